import Dispatch
import Synchronization
import Testing

@testable import Storage

@Suite struct JournalTests {
  @Test func `a journal that always has commits tidies in between`() throws {
    let engine = BusySink(writes: 200)
    let store = Store(
      name: try StoreName("busy"), engine: .log, map: EntryMap(), writingTo: engine, durability: .none)
    engine.store.withLock { $0 = store }
    try store.access { map in try map.write([1], [0]) }
    store.commitWriter!.wake()
    #expect(engine.isDone.wait(timeout: .now() + 20) == .success)
    #expect(engine.tidied.load(ordering: .relaxed) >= 100)
    engine.store.withLock { $0 = nil }
    store.close()
  }

  @Test func `a store can be closed twice`() throws {
    let store = Store(
      name: try StoreName("twice"), engine: .log, map: EntryMap(), writingTo: BusySink(writes: 1), durability: .none)
    store.close()
    store.close()
  }

  @Test func `a journal that always had commits sleeps when there are no more`() throws {
    let engine = BusySink(writes: 2_000)
    let store = Store(
      name: try StoreName("calm"), engine: .log, map: EntryMap(), writingTo: engine, durability: .none)
    engine.store.withLock { $0 = store }
    try store.access { map in try map.write([1], [0]) }
    store.commitWriter!.wake()
    #expect(engine.isDone.wait(timeout: .now() + 20) == .success)
    // If it went on awake, it would be through with that in no time.
    #expect(engine.isDone.wait(timeout: .now() + 0.3) == .timedOut)
    // Once after each write, and a few times for wakes that came too late to be needed.
    let tidied = engine.tidied.load(ordering: .relaxed)
    #expect(tidied < 2_010, "\(tidied) looks for something to tidy")
    engine.store.withLock { $0 = nil }
    store.close()
  }
}

/// A sink whose store has another commit whenever one is written, so that its journal never sleeps.
private final class BusySink: Engine, Sendable {
  let store = Mutex<Store?>(nil)
  let tidied = Atomic(0)
  let isDone = DispatchSemaphore(value: 0)
  private let left: Atomic<Int>

  init(writes: Int) { left = Atomic(writes) }

  var room: Int { 1 << 20 }
  var figures: [(name: String, value: UInt64)] { [] }

  func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [PlacedValue] {
    let rest = left.wrappingSubtract(1, ordering: .relaxed).newValue
    if rest == 0 { isDone.signal() }
    if rest > 0, let store = store.withLock({ $0 }) {
      store.access { map in try? map.write([1], [0]) }
      store.commitWriter!.wake()
    }
    return []
  }

  func performMaintenance(_ store: Store) throws(EngineError) -> Bool {
    tidied.wrappingAdd(1, ordering: .relaxed)
    return false
  }

  func makeRoom() throws(EngineError) {}
  func sync() throws(EngineError) {}
  func endWork() {}
  func close() throws(EngineError) {}
}
