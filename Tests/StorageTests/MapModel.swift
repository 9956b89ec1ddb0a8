import Testing

@testable import Storage

/// The expected contents of a map, in the simplest form.
struct MapModel {
  struct Entry: Equatable {
    var kind: EntryKind
    var revision: UInt64
    var expiry: UInt64
    var value: [UInt8]

    func isLive(at now: UInt64) -> Bool { expiry == 0 || expiry > now }
  }

  var entries: [[UInt8]: Entry] = [:]
  var revision: UInt64 = 0

  func sortedKeys(at now: UInt64) -> [[UInt8]] {
    entries.filter { $0.value.isLive(at: now) }.keys.sorted { $0.lexicographicallyPrecedes($1) }
  }

  func page(prefix: [UInt8], after: [UInt8]?, reverse: Bool, at now: UInt64) -> [[UInt8]] {
    var keys = sortedKeys(at: now).filter { $0.starts(with: prefix) }
    if reverse { keys.reverse() }
    guard let after else { return keys }
    return keys.filter { reverse ? $0.lexicographicallyPrecedes(after) : after.lexicographicallyPrecedes($0) }
  }
}

/// A copy of an entry, made while its view was valid.
struct EntryCopy: Equatable {
  var key: [UInt8]
  var entry: MapModel.Entry

  init(_ view: EntryView) {
    key = unsafe Array(view.key)
    var value = unsafe view.value.map { unsafe Array($0) } ?? []
    if let stored = view.separatedValue {
      value = [UInt8](repeating: 0, count: stored.byteCount)
      let isRead: Void? = unsafe try? value.withUnsafeMutableBytes { unsafe try stored.read(into: $0) }
      #expect(isRead != nil)
    }
    entry = MapModel.Entry(kind: view.kind, revision: view.revision, expiry: view.expiry, value: value)
  }

  init(key: [UInt8], entry: MapModel.Entry) {
    self.key = key
    self.entry = entry
  }
}

/// The map's functions with arrays instead of spans.
extension EntryMap {
  mutating func copy(of key: [UInt8], now: UInt64 = 0) -> EntryCopy? {
    unsafe get(key.span.bytes, now: now).map(EntryCopy.init)
  }

  mutating func write(_ key: [UInt8], _ value: [UInt8], expiry: UInt64 = 0) throws {
    let revision = self.revisions.last + 1
    unsafe try put(key.span.bytes, value.span.bytes, expiry: expiry, revision: revision)
  }

  mutating func ranks(
    prefix: [UInt8] = [], after: [UInt8]? = nil, reverse: Bool = false, now: UInt64 = 0
  ) -> Range<Int> {
    guard let after else { return unsafe ranks(prefix: prefix.span.bytes, after: nil, reverse: reverse, now: now) }
    return unsafe ranks(prefix: prefix.span.bytes, after: after.span.bytes, reverse: reverse, now: now)
  }

  func copies(
    _ ranks: Range<Int>, reverse: Bool = false, in snapshot: Snapshot? = nil, now: UInt64 = 0
  ) throws -> [EntryCopy] {
    var copies: [EntryCopy] = []
    let consumed = try scan(ranks: ranks, reverse: reverse, in: snapshot, now: now) { view in
      copies.append(EntryCopy(view))
      return true
    }
    precondition(consumed == ranks.count)
    return copies
  }
}

extension String {
  var bytes: [UInt8] { Array(utf8) }
}
