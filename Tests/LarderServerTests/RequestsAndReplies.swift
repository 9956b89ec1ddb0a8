import Testing
import Wire

/// A decoded frame from the server.
struct Reply: Equatable, CustomStringConvertible {
  let outcome: Outcome
  let code: ErrorCode
  let id: UInt32
  let more: Bool
  let body: [UInt8]

  init(_ header: FrameHeader, _ body: [UInt8]) {
    outcome = Outcome(rawValue: header.kind)!
    code = ErrorCode(rawValue: header.detail)!
    id = header.id
    more = header.flags & Frame.more != 0
    self.body = body
  }

  /// The size of the whole frame, in bytes.
  var size: Int { Frame.headerSize + body.count }
  var message: String { String(decoding: body, as: UTF8.self) }
  /// The number in the body, or `nil` if the body is not a number.
  var number: UInt64? { body.count == 8 && outcome == .done ? body.unsigned64(at: 0) : nil }
  var isDone: Bool { outcome == .done }

  /// Returns whether the frame is the given error.
  func isError(_ code: ErrorCode, id: UInt32) -> Bool {
    self.code == code && outcome == code.outcome && self.id == id && !more
  }

  /// Returns whether the frame is the given notice.
  func isNotice(_ code: ErrorCode) -> Bool { isError(code, id: 0) }

  /// The entry records of the body.
  var entries: [TestEntry] {
    var entries: [TestEntry] = []
    var offset = 0
    while offset < body.count, let record = unsafe EntryRecord(body.span.bytes, at: offset) {
      entries.append(
        TestEntry(
          isPresent: record.kind != nil, key: Array(body[record.key]), value: Array(body[record.value]),
          revision: record.revision, expiry: record.expiry))
      offset = record.end
    }
    return offset == body.count ? entries : []
  }

  /// The revision up to which a watch has delivered every change with this frame.
  var through: UInt64 { body.count >= 8 ? body.unsigned64(at: 0) : .max }

  /// The change records of a frame of a watch.
  var changes: [TestChange] {
    var changes: [TestChange] = []
    var offset = ChangeRecord.throughSize
    while offset < body.count, let record = unsafe ChangeRecord(body.span.bytes, at: offset) {
      changes.append(
        TestChange(
          kind: record.kind, key: String(decoding: body[record.key], as: UTF8.self), value: Array(body[record.value]),
          revision: record.revision, expiry: record.expiry, changesOnlyExpiry: record.changesOnlyExpiry))
      offset = record.end
    }
    return offset == body.count ? changes : []
  }

  var description: String {
    isDone ? "done \(id)\(more ? " more" : ""), \(body.count) bytes" : "\(code) \(id): \(message)"
  }
}

/// An entry record of a reply.
struct TestEntry: Equatable {
  let isPresent: Bool
  let key: [UInt8]
  let value: [UInt8]
  let revision: UInt64
  let expiry: UInt64

  var text: String { String(decoding: key, as: UTF8.self) }
}

/// A change record of a watch.
struct TestChange: Equatable {
  var kind = ChangeKind.single
  var key = ""
  var value: [UInt8] = []
  let revision: UInt64
  var expiry: UInt64 = 0
  var changesOnlyExpiry = false
}

extension [UInt8] {
  func unsigned64(at offset: Int) -> UInt64 {
    (0..<8).reduce(0) { $0 | UInt64(self[offset + $1]) << (8 * UInt64($1)) }
  }
}

/// An operation of an apply request, as its record.
struct TestOperation {
  let record: [UInt8]

  private init(
    _ kind: ApplyRecord.Kind, _ key: String, _ value: [UInt8] = [], expiry: UInt64 = 0, ifAbsent: Bool = false,
    ifRevision: UInt64? = nil, creates: Bool = false
  ) {
    var buffer = ByteBuffer()
    unsafe buffer.appendApply(
      kind, expiry: expiry, ifAbsent: ifAbsent, ifRevision: ifRevision, creates: creates,
      key: Array(key.utf8).span.bytes, value: value.span.bytes)
    record = buffer.toArray()
  }

  static func put(
    _ key: String, _ value: [UInt8], expiry: UInt64 = 0, ifAbsent: Bool = false, ifRevision: UInt64? = nil
  ) -> TestOperation {
    TestOperation(.putSingle, key, value, expiry: expiry, ifAbsent: ifAbsent, ifRevision: ifRevision)
  }

  static func putList(_ key: String, _ elements: [[UInt8]]) -> TestOperation {
    TestOperation(.putList, key, ListValue.encode(elements))
  }

  static func delete(_ key: String, ifRevision: UInt64? = nil) -> TestOperation {
    TestOperation(.delete, key, ifRevision: ifRevision)
  }

  static func update(
    _ key: String, _ update: String, ifRevision: UInt64? = nil, creates: Bool = false
  ) -> TestOperation {
    TestOperation(.update, key, Array(update.utf8), ifRevision: ifRevision, creates: creates)
  }

  static func check(_ key: String, revision: UInt64? = nil) -> TestOperation {
    TestOperation(.check, key, ifRevision: revision)
  }

  static func checkAbsent(_ key: String) -> TestOperation { TestOperation(.check, key, ifAbsent: true) }
}

/// Builders of request frames. The default store handle is 1.
enum Request {
  /// Returns a request with the given body.
  static func make(_ operation: Operation, store: UInt16 = 1, id: UInt32, _ body: [UInt8] = []) -> [UInt8] {
    var buffer = ByteBuffer()
    let start = buffer.beginRequest(operation, store: store, id: id)
    buffer.append(body)
    buffer.endFrame(start)
    return buffer.toArray()
  }

  static func ping(_ id: UInt32) -> [UInt8] { make(.ping, store: 0, id: id) }

  static func get(_ key: String, id: UInt32) -> [UInt8] { make(.get, id: id, Array(key.utf8)) }

  static func put(
    _ key: String, _ value: [UInt8], id: UInt32, store: UInt16 = 1, expiry: UInt64 = 0, ifAbsent: Bool = false,
    ifRevision: UInt64? = nil
  ) -> [UInt8] {
    make(
      .put, store: store, id: id,
      write(key, value, expiry: expiry, ifAbsent: ifAbsent, ifRevision: ifRevision))
  }

  static func putMany(_ entries: [(key: String, value: [UInt8])], id: UInt32, expiry: UInt64 = 0) -> [UInt8] {
    make(.putMany, id: id, bytes(UInt32(entries.count)) + entries.flatMap { write($0.key, $0.value, expiry: expiry) })
  }

  static func putMany(records: [[UInt8]], id: UInt32) -> [UInt8] {
    make(.putMany, id: id, bytes(UInt32(records.count)) + records.flatMap { $0 })
  }

  /// Returns a write record.
  static func write(
    _ key: String, _ value: [UInt8], expiry: UInt64 = 0, ifAbsent: Bool = false, ifRevision: UInt64? = nil
  ) -> [UInt8] {
    var buffer = ByteBuffer()
    unsafe buffer.appendWrite(
      kind: .single, expiry: expiry, ifAbsent: ifAbsent, ifRevision: ifRevision, key: Array(key.utf8).span.bytes,
      value: value.span.bytes)
    return buffer.toArray()
  }

  static func delete(_ key: String, id: UInt32, ifRevision: UInt64? = nil) -> [UInt8] {
    make(.delete, id: id, ifRevision.map { [4] + bytes($0) + key.utf8 } ?? [0] + key.utf8)
  }

  /// Returns a get-many or delete-many request.
  static func keys(_ operation: Operation, _ keys: [String], id: UInt32) -> [UInt8] {
    make(operation, id: id, bytes(UInt32(keys.count)) + keys.flatMap { bytes(UInt16($0.utf8.count)) + $0.utf8 })
  }

  static func page(
    id: UInt32, offset: UInt64 = 0, limit: UInt32, prefix: String = "", after: String? = nil, reverse: Bool = false,
    keysOnly: Bool = false
  ) -> [UInt8] {
    scan(.page, id: id, page: (limit, offset), prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
  }

  static func all(
    id: UInt32, prefix: String = "", after: String? = nil, reverse: Bool = false, keysOnly: Bool = false
  ) -> [UInt8] {
    scan(.all, id: id, page: nil, prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
  }

  private static func scan(
    _ operation: Operation, id: UInt32, page: (limit: UInt32, offset: UInt64)?, prefix: String, after: String?,
    reverse: Bool, keysOnly: Bool
  ) -> [UInt8] {
    var buffer = ByteBuffer()
    let prefix = Array(prefix.utf8)
    if let after {
      unsafe buffer.appendScan(
        page: page, prefix: prefix.span.bytes, after: Array(after.utf8).span.bytes, reverse: reverse,
        keysOnly: keysOnly)
    } else {
      unsafe buffer.appendScan(
        page: page, prefix: prefix.span.bytes, after: nil, reverse: reverse, keysOnly: keysOnly)
    }
    return make(operation, id: id, buffer.toArray())
  }

  static func watch(
    id: UInt32, from: UInt64 = 0, incarnation: UInt64? = nil, prefix: String = "", keysOnly: Bool = false
  ) -> [UInt8] {
    var buffer = ByteBuffer()
    unsafe buffer.appendWatch(
      from: from, incarnation: incarnation, prefix: Array(prefix.utf8).span.bytes, keysOnly: keysOnly)
    return make(.watch, id: id, buffer.toArray())
  }

  static func find(
    id: UInt32, countOnly: Bool = false, limit: UInt32? = nil, skip: UInt64 = 0, selector: String = "",
    sort: String = "", fields: String = "", bookmark: String = "", explain: Bool = false, index: String? = nil
  ) -> [UInt8] {
    let (selector, sort) = (Array(selector.utf8), Array(sort.utf8))
    let (fields, bookmark) = (Array(fields.utf8), Array(bookmark.utf8))
    var buffer = ByteBuffer()
    unsafe buffer.appendFind(
      countOnly: countOnly, explain: explain, limit: limit, skip: skip, selector: selector.span.bytes,
      sort: sort.span.bytes, fields: fields.span.bytes, bookmark: bookmark.span.bytes, index: index)
    return make(.find, id: id, buffer.toArray())
  }

  static func aggregate(id: UInt32, selector: String = "", aggregation: String) -> [UInt8] {
    var buffer = ByteBuffer()
    let (selector, aggregation) = (Array(selector.utf8), Array(aggregation.utf8))
    unsafe buffer.appendAggregate(selector: selector.span.bytes, aggregation: aggregation.span.bytes)
    return make(.aggregate, id: id, buffer.toArray())
  }

  /// Returns a request to update the documents that match, or to delete them if there is no update.
  static func change(id: UInt32, selector: String = "", update: String? = nil, dryRun: Bool = false) -> [UInt8] {
    var buffer = ByteBuffer()
    let selector = Array(selector.utf8)
    if let update {
      let update = Array(update.utf8)
      unsafe buffer.appendChangeMatching(dryRun: dryRun, selector: selector.span.bytes, update: update.span.bytes)
    } else {
      unsafe buffer.appendChangeMatching(dryRun: dryRun, selector: selector.span.bytes, update: nil)
    }
    return make(.changeMatching, id: id, buffer.toArray())
  }

  static func apply(_ operations: [TestOperation], id: UInt32, store: UInt16 = 1) -> [UInt8] {
    make(.apply, store: store, id: id, bytes(UInt32(operations.count)) + operations.flatMap(\.record))
  }

  static func credit(_ amount: UInt32, id: UInt32) -> [UInt8] { make(.credit, store: 0, id: id, bytes(amount)) }

  static func cancel(_ id: UInt32) -> [UInt8] { make(.cancel, store: 0, id: id) }

  static func create(_ name: String, engine: String = "memory", id: UInt32) -> [UInt8] {
    make(.storeCreate, store: 0, id: id, [UInt8(name.utf8.count)] + name.utf8 + engine.utf8)
  }

  static func drop(_ name: String, id: UInt32) -> [UInt8] { make(.storeDrop, store: 0, id: id, Array(name.utf8)) }

  static func open(_ name: String, id: UInt32) -> [UInt8] { make(.storeOpen, store: 0, id: id, Array(name.utf8)) }

  /// Returns the little-endian bytes of an integer.
  static func bytes<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
    (0..<T.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> (8 * T($0))) }
  }
}
