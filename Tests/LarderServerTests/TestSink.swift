import Dispatch
import Storage
import Synchronization

/// A sink that writes when the test lets it, and fails when the test says so.
final class TestSink: Engine, Sendable {
  private let state = Mutex(State())
  private let isOpen = DispatchSemaphore(value: 0)

  private struct State {
    var holds = false
    var error: EngineError?
    var room = 0
    /// What the disk has beside.
    var space = 1 << 20
    var writes = 0
    var syncedWrites = 0
    var syncs = 0
    var byteCount = 0
  }

  /// Has writes wait until `letGo`.
  func hold() { state.withLock { $0.holds = true } }

  func letGo() {
    state.withLock { $0.holds = false }
    isOpen.signal()
  }

  /// Has every call fail from now on.
  func fail(_ error: EngineError) { state.withLock { $0.error = error } }

  /// How many bytes the disk can still take, taken room included.
  func setSpace(_ byteCount: Int) {
    state.withLock {
      $0.room = min($0.room, byteCount)
      $0.space = byteCount - $0.room
    }
  }

  var writes: Int { state.withLock { $0.writes } }
  var syncedWrites: Int { state.withLock { $0.syncedWrites } }
  var syncs: Int { state.withLock { $0.syncs } }
  var byteCount: Int { state.withLock { $0.byteCount } }

  // MARK: The sink

  var room: Int { state.withLock { $0.room } }

  func makeRoom() throws(EngineError) {
    let isPossible = state.withLock { state in
      guard state.space > 0 else { return false }
      state.room += state.space
      state.space = 0
      return true
    }
    if !isPossible { throw .noSpace }
  }

  func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [PlacedValue] {
    while state.withLock({ $0.holds && $0.error == nil }) { _ = isOpen.wait(timeout: .now() + .milliseconds(5)) }
    let error = state.withLock { state -> EngineError? in
      state.writes += 1
      if syncs { state.syncedWrites += 1 }
      state.byteCount += records.count
      state.room -= records.count
      return state.error
    }
    if let error { throw error }
    return []
  }

  func sync() throws(EngineError) {
    if let error = state.withLock({ state in
      state.syncs += 1
      return state.error
    }) {
      throw error
    }
  }

  func performMaintenance(_ context: any MaintenanceContext) throws(EngineError) -> Bool { false }

  func endWork() {}

  func close() throws(EngineError) {}

  var figures: [(name: String, value: UInt64)] { [] }
}
