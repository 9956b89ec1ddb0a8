import Foundation
import Platform
import ReplicationTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Storage

/// An entry of a test's model.
struct ModelEntry: Equatable, CustomStringConvertible {
  var value: [UInt8]
  var kind: EntryKind = .single
  var revision: UInt64
  /// The expiry on the map's clock; 0 for never.
  var expiry: UInt64 = 0

  var description: String { "\(kind) of \(value.count) bytes, revision \(revision), expiry \(expiry)" }
}

/// A write, as a log records it and as it changes a dictionary.
enum WriteOperation: Sendable {
  case put(key: String, value: [UInt8], kind: EntryKind, expiry: UInt64)
  case delete(key: String)
  case deleteAll

  func apply(to entries: inout [String: ModelEntry], revision: UInt64) {
    switch self {
    case .put(let key, let value, let kind, let expiry):
      entries[key] = ModelEntry(value: value, kind: kind, revision: revision, expiry: expiry)
    case .delete(let key): entries[key] = nil
    case .deleteAll: entries = [:]
    }
  }

  /// The difference between the wall clock and the clock of the tests' maps, in milliseconds.
  static let clockOffset: UInt64 = 1_000_000

  func append(to buffer: inout CommitBuffer, revision: UInt64) {
    switch self {
    case .put(let key, let value, let kind, let expiry):
      unsafe Array(key.utf8).withUnsafeBytes { key in
        unsafe value.withUnsafeBytes { value in
          unsafe buffer.put(
            key, value, kind: kind == .list ? .list : .single,
            expiry: expiry == 0 ? 0 : expiry + WriteOperation.clockOffset,
            revision: revision)
        }
      }
    case .delete(let key):
      unsafe Array(key.utf8).withUnsafeBytes { unsafe buffer.delete($0, revision: revision) }
    case .deleteAll: buffer.deleteAll(revision: revision)
    }
  }

  func apply(to map: inout EntryMap, revision: UInt64) throws {
    switch self {
    case .put(let key, let value, let kind, let expiry):
      let key = Array(key.utf8)
      unsafe try map.put(key.span.bytes, value.span.bytes, kind: kind, expiry: expiry, revision: revision)
    case .delete(let key):
      let key = Array(key.utf8)
      _ = unsafe try map.delete(key.span.bytes, revision: revision, now: 0)
    case .deleteAll: _ = try map.deleteAll(now: 0)
    }
  }
}

extension [UInt8] {
  /// The value of a list with these bytes as its only element.
  var asOnlyElement: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: UInt32(count))
    return bytes + self
  }
}

extension EntryMap {
  /// Returns all entries that have not expired, now or when the snapshot was taken. Reads separated values.
  func modelEntries(now: UInt64 = 0, in snapshot: Snapshot? = nil) throws -> [String: ModelEntry] {
    var entries: [String: ModelEntry] = [:]
    var stored: [String: SeparatedValue] = [:]
    _ = try scan(ranks: 0..<(snapshot?.count ?? order.count), reverse: false, in: snapshot, now: now) { view in
      let key = unsafe String(decoding: view.key, as: UTF8.self)
      stored[key] = view.separatedValue
      #expect(unsafe (view.value == nil) == (stored[key] != nil))
      entries[key] = unsafe ModelEntry(
        value: view.value.map { unsafe Array($0) } ?? [], kind: view.kind, revision: view.revision, expiry: view.expiry)
      return true
    }
    for (key, value) in stored { entries[key]?.value = try value.bytes() }
    return entries
  }
}

extension Store {
  convenience init() throws { self.init(name: try StoreName("tests"), engine: .memory) }
}

extension LogConfiguration {
  /// Sizes so small that a few writes fill a segment.
  static let tiny = {
    var configuration = LogConfiguration()
    (configuration.minSegmentSize, configuration.maxSegmentSize, configuration.reserveThreshold) =
      (2_048, 8_192, 4_096)
    return configuration
  }()
}

/// Runs the steps of compactions when the test asks for it.
final class SteppedRunner: CompactionRunner {
  private let steps = Mutex<[@Sendable () -> Int?]>([])

  func run(bytesPerSecond: Int, _ step: @escaping @Sendable () -> Int?) { steps.withLock { $0.append(step) } }

  func stop() { steps.withLock { $0 = [] } }

  /// - Returns: Whether there was a step to run.
  func advance() -> Bool {
    guard let step = steps.withLock({ $0.first }) else { return false }
    if step() == nil { steps.withLock { _ = $0.removeFirst() } }
    return true
  }
}

/// An open log and its store, on any disk.
final class TestLog {
  static let folder = "/log"
  let store: Store
  let engine: LogEngine
  let runner = SteppedRunner()
  let recovery: LogRecovery

  init(
    _ files: any FileSystem, folder: String = TestLog.folder, configuration: LogConfiguration = .tiny, now: UInt64 = 0
  ) throws {
    let (store, runner) = (try Store(), runner)
    (files as? SimulatedDisk)?.placeFolder(folder)
    (engine, recovery) = try store.access { map throws(LogError) in
      try LogEngine.open(
        folder, files: files, configuration: configuration,
        at: ClockReading(wall: now + WriteOperation.clockOffset, monotonic: now), identity: 0x1234_5678_9ABC_DEF1,
        runner: runner, into: &map)
    }
    self.store = store
  }

  /// Does a step of maintenance.
  /// - Returns: Whether there is more to do.
  func performMaintenance() throws -> Bool {
    let hasAdvanced = runner.advance()
    return try engine.performMaintenance(store) || hasAdvanced
  }

  var revision: UInt64 { store.access { $0.revisions.last } }

  func entries(now: UInt64 = 0) throws -> [String: ModelEntry] {
    try store.access { map in try map.modelEntries(now: now) }
  }

  /// Applies the operations to the map and the log, each with a revision of its own.
  func commit(_ operations: [WriteOperation], syncs: Bool = true) throws {
    var buffer = CommitBuffer()
    var last: UInt64 = 0
    for operation in operations {
      let revision = revision + 1
      try store.access { map in
        try operation.apply(to: &map, revision: revision)
        map.revisions.advance(to: revision)
      }
      operation.append(to: &buffer, revision: revision)
      last = revision
    }
    buffer.seal()
    while unsafe engine.reservedByteCount < buffer.bytes.count { try engine.reserveSpace() }
    store.updateLocations(
      unsafe try engine.write(buffer.bytes, last: last, separatedCount: buffer.separatedCount, syncs: syncs))
    buffer.removeAll()
  }
}
