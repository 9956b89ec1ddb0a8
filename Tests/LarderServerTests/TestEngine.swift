import Dispatch
import Storage
import Synchronization

/// A log engine without files, whose writes a test can pause and make fail.
final class TestEngine: Engine, Sendable {
  private let state = Mutex(State())
  private let resumed = DispatchSemaphore(value: 0)
  /// What the store requires for its replies; nil if it requires none.
  let lease: Lease?

  private struct State {
    var isPaused = false
    var holdsReservations = false
    var isReservingSpace = false
    var error: EngineError?
    var reservedByteCount = 0
    /// The free space on the simulated disk, in addition to `room`.
    var space = 1 << 20
    var writes = 0
    var syncedWrites = 0
    var syncs = 0
    var byteCount = 0
  }

  /// The part of its space that only removals may use, in bytes.
  let removalReserveByteCount: Int

  init(lease: Lease? = nil, removalReserve: Int = 0) {
    self.lease = lease
    removalReserveByteCount = removalReserve
  }

  /// Makes writes wait until `resume()`.
  func pause() { state.withLock { $0.isPaused = true } }

  func resume() {
    state.withLock { $0.isPaused = false }
    resumed.signal()
  }

  /// Sets whether reservations of space stay unfinished, as those of a directory store do for a while.
  func holdReservations(_ holds: Bool) { state.withLock { $0.holdsReservations = holds } }

  /// Makes every call fail from now on.
  func fail(_ error: EngineError) { state.withLock { $0.error = error } }

  /// Sets the number of bytes that fit on the simulated disk, including the room already allocated.
  func setSpace(_ byteCount: Int) {
    state.withLock {
      $0.reservedByteCount = min($0.reservedByteCount, byteCount)
      $0.space = byteCount - $0.reservedByteCount
    }
  }

  var writes: Int { state.withLock { $0.writes } }
  var syncedWrites: Int { state.withLock { $0.syncedWrites } }
  var syncs: Int { state.withLock { $0.syncs } }
  var byteCount: Int { state.withLock { $0.byteCount } }

  // MARK: Engine

  var reservedByteCount: Int { state.withLock { $0.reservedByteCount } }

  var isReservingSpace: Bool { state.withLock { $0.isReservingSpace } }

  func reserveSpace() throws(EngineError) {
    let isPossible = state.withLock { state in
      state.isReservingSpace = state.holdsReservations
      if state.holdsReservations { return true }
      guard state.space > 0 else { return false }
      state.reservedByteCount += state.space
      state.space = 0
      return true
    }
    if !isPossible { throw .noSpace }
  }

  func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [ValueLocation] {
    while state.withLock({ $0.isPaused && $0.error == nil }) { _ = resumed.wait(timeout: .now() + .milliseconds(5)) }
    let error = state.withLock { state -> EngineError? in
      state.writes += 1
      if syncs { state.syncedWrites += 1 }
      state.byteCount += records.count
      state.reservedByteCount -= records.count
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

  func stopBackgroundWork() {}

  func close() throws(EngineError) {}

  var figures: [(name: String, value: UInt64)] { [] }
}
