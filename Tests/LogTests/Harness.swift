import Foundation
import Platform
import SimulatedDisk
import Synchronization
import Testing

@testable import Storage

/// An entry as the tests know it.
struct Plain: Equatable, CustomStringConvertible {
  var value: [UInt8]
  var kind: EntryKind = .single
  var revision: UInt64
  /// On the map's clock.
  var expiry: UInt64 = 0

  var description: String { "\(kind) of \(value.count) bytes, revision \(revision), expiry \(expiry)" }
}

/// One write, as it is logged and as it changes a dictionary.
enum Work: Sendable {
  case put(key: String, value: [UInt8], kind: EntryKind, expiry: UInt64)
  case delete(key: String)
  case deleteAll

  func apply(to entries: inout [String: Plain], revision: UInt64) {
    switch self {
    case .put(let key, let value, let kind, let expiry):
      entries[key] = Plain(value: value, kind: kind, revision: revision, expiry: expiry)
    case .delete(let key): entries[key] = nil
    case .deleteAll: entries = [:]
    }
  }

  /// The clock of the tests' maps and the one of logs differ by this much.
  static let clockOffset: UInt64 = 1_000_000

  func log(to buffer: inout CommitBuffer, revision: UInt64) {
    switch self {
    case .put(let key, let value, let kind, let expiry):
      unsafe Array(key.utf8).withUnsafeBytes { key in
        unsafe value.withUnsafeBytes { value in
          unsafe buffer.put(
            key, value, kind: kind == .list ? .list : .single, expiry: expiry == 0 ? 0 : expiry + Work.clockOffset,
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

extension EntryMap {
  /// All entries that have not expired, now or when the snapshot was taken. What lies in files is read.
  func plain(now: UInt64 = 0, in snapshot: Snapshot? = nil) throws -> [String: Plain] {
    var entries: [String: Plain] = [:]
    var stored: [String: StoredValue] = [:]
    _ = try scan(ranks: 0..<(snapshot?.count ?? order.count), reverse: false, in: snapshot, now: now) { view in
      let key = unsafe String(decoding: view.key, as: UTF8.self)
      stored[key] = view.storedValue
      #expect(unsafe (view.value == nil) == (stored[key] != nil))
      entries[key] = unsafe Plain(
        value: view.value.map { unsafe Array($0) } ?? [], kind: view.kind, revision: view.revision, expiry: view.expiry)
      return true
    }
    for (key, value) in stored { entries[key]?.value = try value.bytes() }
    return entries
  }
}

extension StoredValue {
  func bytes() throws(StoredValueError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    var span = bytes.mutableSpan
    var raw = unsafe span.mutableBytes
    unsafe try raw.withUnsafeMutableBytes { (room) throws(StoredValueError) in unsafe try read(into: room) }
    return bytes
  }
}

extension Store {
  convenience init() throws { self.init(name: try StoreName("tests"), engine: .memory) }
}

extension LogSizes {
  /// So small that a few writes fill a segment.
  static let tiny = {
    var sizes = LogSizes()
    (sizes.minSegmentSize, sizes.maxSegmentSize, sizes.reserveFrom, sizes.markInterval) = (2_048, 8_192, 4_096, 64)
    return sizes
  }()
}

/// Runs the steps of compactions when the test says so.
final class SteppedRunner: CompactionRunner {
  private let steps = Mutex<[@Sendable () -> Int?]>([])

  func run(bytesPerSecond: Int, _ step: @escaping @Sendable () -> Int?) { steps.withLock { $0.append(step) } }

  func end() { steps.withLock { $0 = [] } }

  /// - Returns: whether there was a step to run.
  func advance() -> Bool {
    guard let step = steps.withLock({ $0.first }) else { return false }
    if step() == nil { steps.withLock { _ = $0.removeFirst() } }
    return true
  }
}

/// A log, and the store it is of, on some disk.
final class OpenLog {
  static let folder = "/log"
  let store: Store
  let engine: LogEngine
  let runner = SteppedRunner()
  let recovery: LogRecovery

  init(_ files: any FileSystem, folder: String = OpenLog.folder, sizes: LogSizes = .tiny, now: UInt64 = 0) throws {
    let (store, runner) = (try Store(), runner)
    (engine, recovery) = try store.access { map throws(LogError) in
      try LogEngine.open(
        folder, files: files, sizes: sizes, now: now, unixNow: now + Work.clockOffset, identity: 0x1234_5678_9ABC_DEF1,
        runner: runner, into: &map)
    }
    self.store = store
  }

  /// Does a piece of what can wait.
  /// - Returns: whether there is more.
  func performMaintenance() throws -> Bool {
    let hasAdvanced = runner.advance()
    return try engine.performMaintenance(store) || hasAdvanced
  }

  var revision: UInt64 { store.access { $0.revision } }

  func entries(now: UInt64 = 0) throws -> [String: Plain] {
    try store.access { map in try map.plain(now: now) }
  }

  /// Does the works, a revision each, in the map and in the log.
  func commit(_ works: [Work], syncs: Bool = true) throws {
    var buffer = CommitBuffer()
    var last: UInt64 = 0
    for work in works {
      let revision = revision + 1
      try store.access { map in
        try work.apply(to: &map, revision: revision)
        map.revision = revision
      }
      work.log(to: &buffer, revision: revision)
      last = revision
    }
    buffer.seal()
    while unsafe engine.room < buffer.bytes.count { try engine.makeRoom() }
    store.place(unsafe try engine.write(buffer.bytes, last: last, separatedCount: buffer.separatedCount, syncs: syncs))
    buffer.removeAll()
  }
}
