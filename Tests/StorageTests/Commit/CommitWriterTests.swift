import Dispatch
import Synchronization
import Testing

@testable import Storage

@Suite struct CommitWriterTests {
  @Test func `a writer that always has commits performs maintenance in between`() throws {
    let engine = BusyEngine(writes: 200)
    let store = Store(
      name: try StoreName("busy"), engine: .log, map: EntryMap(), writingTo: engine, durability: .none)
    engine.store.withLock { $0 = store }
    try store.access { map in try map.write([1], [0]) }
    store.commitWriter!.wake()
    #expect(engine.isDone.wait(timeout: .now() + 20) == .success)
    #expect(engine.maintenanceCount.load(ordering: .relaxed) >= 100)
    engine.store.withLock { $0 = nil }
    store.close()
  }

  @Test func `a store can be closed twice`() throws {
    let store = Store(
      name: try StoreName("twice"), engine: .log, map: EntryMap(), writingTo: BusyEngine(writes: 1), durability: .none)
    store.close()
    store.close()
  }

  @Test func `a writer that always had commits sleeps when there are no more`() throws {
    let engine = BusyEngine(writes: 2_000)
    let store = Store(
      name: try StoreName("calm"), engine: .log, map: EntryMap(), writingTo: engine, durability: .none)
    engine.store.withLock { $0 = store }
    try store.access { map in try map.write([1], [0]) }
    store.commitWriter!.wake()
    #expect(engine.isDone.wait(timeout: .now() + 20) == .success)
    // If it stayed awake, it would get there in no time.
    #expect(engine.isDone.wait(timeout: .now() + 0.3) == .timedOut)
    // Once after each write, and a few times for wakeups that came too late to be needed.
    let maintenanceCount = engine.maintenanceCount.load(ordering: .relaxed)
    #expect(maintenanceCount < 2_010, "\(maintenanceCount) calls for maintenance")
    engine.store.withLock { $0 = nil }
    store.close()
  }
}

/// An engine whose store gets another commit whenever one is written, so that its writer never sleeps.
private final class BusyEngine: Engine, Sendable {
  let store = Mutex<Store?>(nil)
  let maintenanceCount = Atomic(0)
  let isDone = DispatchSemaphore(value: 0)
  private let remaining: Atomic<Int>

  init(writes: Int) { remaining = Atomic(writes) }

  var reservedByteCount: Int { 1 << 20 }
  var figures: [(name: String, value: UInt64)] { [] }

  func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [ValueLocation] {
    let rest = remaining.wrappingSubtract(1, ordering: .relaxed).newValue
    if rest == 0 { isDone.signal() }
    if rest > 0, let store = store.withLock({ $0 }) {
      store.access { map in try? map.write([1], [0]) }
      store.commitWriter!.wake()
    }
    return []
  }

  func performMaintenance(_ context: any MaintenanceContext) throws(EngineError) -> Bool {
    maintenanceCount.wrappingAdd(1, ordering: .relaxed)
    return false
  }

  func reserveSpace() throws(EngineError) {}
  func sync() throws(EngineError) {}
  func stopBackgroundWork() {}
  func close() throws(EngineError) {}
}
