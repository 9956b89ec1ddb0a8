import TestSupport
import Wire

/// The fields of a vector's frame; nil if one does not apply. The names are those of the vectors' files.
struct Fields: Decodable, Equatable, Sendable {
  // Every frame.
  private(set) var operation: String?
  private(set) var to: String?
  private var id: UInt32
  private var store: UInt16?
  private(set) var outcome: UInt8?
  private var more: Bool?
  private(set) var code: String?
  private var message: String?
  // Hellos.
  private var lowestVersion: UInt16?
  private var highestVersion: UInt16?
  private var version: UInt16?
  private var features: UInt32?
  private var credit: UInt32?
  private var maxFrameSize: UInt32?
  private var maxValueSize: UInt32?
  private var maxKeySize: UInt16?
  private var maxOpenStores: UInt16?
  private var maxRequestsInFlight: UInt32?
  private var maxKeyCount: UInt32?
  // Watches.
  private var from: UInt64?
  private var incarnation: UInt64?
  private var through: UInt64?
  private var changes: [RecordFields]?
  // Stores.
  private var name: String?
  private var token: String?
  private var engine: String?
  private var specification: String?
  private var node: String?
  private var maxStaleness: UInt32?
  private var handle: UInt16?
  private var figures: [FigureFields]?
  private var slow: [SlowFields]?
  private var most: UInt32?
  private var connections: [ConnectionFields]?
  private var stores: [StoreFields]?
  // Entries.
  private var keyHex: String?
  private var keysHex: [String]?
  private var prefixHex: String?
  private var cursorHex: String?
  private var records: [RecordFields]?
  private var ifRevision: UInt64?
  private var reverse: Bool?
  private var keysOnly: Bool?
  private var limit: UInt32?
  private var offset: UInt64?
  private var revision: UInt64?
  private var count: UInt64?
  private var size: UInt64?
  private var upload: UInt64?
  private var bytesHex: String?
  // Documents.
  private var countOnly: Bool?
  private var explain: Bool?
  private var skip: UInt64?
  private var selector: String?
  private var sort: String?
  private var fields: String?
  private var bookmark: String?
  private var index: String?
  private var time: UInt32?
  private var aggregation: String?
  private var dryRun: Bool?
  private var delete: Bool?
  private var update: String?
  private var changed: ChangedFields?
  private var definition: String?
  private var created: Bool?
  private var indexes: String?
  private var question: String?
  private var identity: String?
  private var decisions: String?
  private var tokens: String?
  private var cluster: String?
  private var console: String?

  private init(id: UInt32) { self.id = id }

  /// Whether all texts of the fields were UTF-8.
  var hasOnlyText: Bool {
    let texts = [
      name, engine, specification, selector, sort, fields, bookmark, index, aggregation, update, definition, question,
      node,
    ]
    return !texts.contains { $0?.unicodeScalars.contains("\u{FFFD}") ?? false }
  }

  /// Whether the encoders can produce the fields: they never encode an expiry of 0.
  var hasOneForm: Bool { !(records ?? []).contains { $0.hasZeroExpiry } }
}

struct RecordFields: Decodable, Equatable, Sendable {
  private var kind: String
  private var keyHex: String?
  private var valueHex: String?
  private var elementsHex: [String]?
  private var expireAfterMilliseconds: UInt64?
  private var onlyExpiry: Bool?
  private var revision: UInt64?
  private var ifAbsent: Bool?
  private var ifRevision: UInt64?
  private var create: Bool?
  private var examinedDocuments: UInt64?
  private var examinedKeys: UInt64?
  private var found: UInt64?
  private var nanoseconds: UInt64?
  private var text: String?

  fileprivate var hasZeroExpiry: Bool { expireAfterMilliseconds == 0 }
}

/// The numbers in the reply to a change of matching documents.
struct ChangedFields: Decodable, Equatable, Sendable {
  private let matched: UInt64
  private let changed: UInt64
  private let revision: UInt64
  private let examinedDocuments: UInt64
  private let examinedKeys: UInt64
  private let nanoseconds: UInt64

  fileprivate init(_ changes: MatchingChanges) {
    (matched, changed, revision) = (changes.matched, changes.changed, changes.revision)
    (examinedDocuments, examinedKeys) = (changes.examinedDocuments, changes.examinedKeys)
    nanoseconds = changes.nanoseconds
  }

  fileprivate var changes: MatchingChanges {
    MatchingChanges(
      matched: matched, changed: changed, revision: revision, examinedDocuments: examinedDocuments,
      examinedKeys: examinedKeys, nanoseconds: nanoseconds)
  }
}

/// Converts requests between a vector's fields and bytes, with the module's own encoders and decoders.
extension Fields {
  /// Returns the bytes of the request that the fields describe.
  func encodedRequest() -> [UInt8] {
    var buffer = ByteBuffer()
    let operation = Operation.allCases.first { $0.vectorName == self.operation }!
    if operation == .hello {
      buffer.appendRequest(
        ClientHello(
          versions: lowestVersion!...highestVersion!, features: features!, credit: credit!, name: name!,
          token: token ?? ""),
        id: id)
      return buffer.toArray()
    }
    let start = buffer.beginRequest(operation, store: store!, id: id)
    switch operation {
    case .credit: buffer.append(credit!)
    case .storeOpen, .storeDrop, .indexDelete: buffer.append(name!)
    case .storeCreate: buffer.append(NamedStoreRequest(name: name!, argument: specification!))
    case .storeMove: buffer.append(NamedStoreRequest(name: name!, argument: node!))
    case .storeOpenStale: buffer.append(StaleOpenRequest(name: name!, maxStaleness: maxStaleness!))
    case .get: buffer.append([UInt8](hex: keyHex!))
    case .getRange:
      let key = [UInt8](hex: keyHex!)
      unsafe buffer.appendRange(
        offset: offset!, count: UInt32(count!), ifRevision: ifRevision, key: key.span.bytes)
    case .getMany, .deleteMany:
      buffer.append(UInt32(keysHex!.count))
      for key in keysHex! { unsafe buffer.appendListedKey([UInt8](hex: key).span.bytes) }
    case .put, .putMany:
      if operation == .putMany { buffer.append(UInt32(records!.count)) }
      for record in records! { record.appendWrite(to: &buffer) }
    case .delete:
      buffer.append(ifRevision == nil ? UInt8(0) : RecordFlags.ifRevision)
      if let ifRevision { buffer.append(ifRevision) }
      buffer.append([UInt8](hex: keyHex!))
    case .count: buffer.append([UInt8](hex: prefixHex!))
    case .page, .all: appendScan(to: &buffer)
    case .connections: buffer.append(most!)
    case .watch:
      let prefix = [UInt8](hex: prefixHex!)
      unsafe buffer.appendWatch(
        from: from!, incarnation: incarnation, prefix: prefix.span.bytes, keysOnly: keysOnly ?? false)
    case .find: appendFind(to: &buffer)
    case .aggregate:
      let (selector, aggregation) = (Array(selector!.utf8), Array(aggregation!.utf8))
      unsafe buffer.appendAggregate(
        selector: selector.span.bytes, aggregation: aggregation.span.bytes, time: time, explain: explain ?? false)
    case .changeMatching:
      let (selector, update) = (Array(selector!.utf8), Array((update ?? "").utf8))
      unsafe buffer.appendChangeMatching(
        dryRun: dryRun ?? false, selector: selector.span.bytes, update: delete == true ? nil : update.span.bytes,
        time: time)
    case .apply:
      buffer.append(UInt32(records!.count))
      for record in records! { record.appendOperation(to: &buffer) }
    case .indexEnsure: buffer.append(definition!)
    case .uploadPart:
      let bytes = [UInt8](hex: bytesHex!)
      unsafe buffer.appendUploadPart(upload!, offset: offset!, bytes: bytes.span.bytes)
    case .uploadPut: records![0].appendUploadPut(upload!, size: size!, to: &buffer)
    case .uploadDiscard: buffer.append(upload!)
    case .rulesCheck: buffer.append(question!)
    case .hello, .cancel, .ping, .stats, .slowLog, .storeClose, .storeList, .deleteAll, .indexList, .uploadBegin,
      .whoami, .tokenList, .cluster, .consoleLink:
      break
    }
    buffer.endFrame(start)
    return buffer.toArray()
  }

  private func appendFind(to buffer: inout ByteBuffer) {
    let (selector, sort) = (Array(selector!.utf8), Array(sort!.utf8))
    let (fields, bookmark) = (Array(fields!.utf8), Array(bookmark!.utf8))
    unsafe buffer.appendFind(
      countOnly: countOnly ?? false, explain: explain ?? false, limit: limit, skip: skip!,
      selector: selector.span.bytes, sort: sort.span.bytes, fields: fields.span.bytes,
      bookmark: bookmark.span.bytes, index: index, time: time)
  }

  private func appendScan(to buffer: inout ByteBuffer) {
    let page = limit.map { (limit: $0, offset: offset!) }
    let prefix = [UInt8](hex: prefixHex!)
    let (reverse, keysOnly) = (reverse ?? false, keysOnly ?? false)
    if let cursorHex {
      let cursor = [UInt8](hex: cursorHex)
      unsafe buffer.appendScan(
        page: page, prefix: prefix.span.bytes, after: cursor.span.bytes, reverse: reverse, keysOnly: keysOnly)
    } else {
      unsafe buffer.appendScan(page: page, prefix: prefix.span.bytes, after: nil, reverse: reverse, keysOnly: keysOnly)
    }
  }

  /// Decodes the fields of the request in `bytes`, or returns nil if it is not complete and well-formed.
  init?(request bytes: [UInt8]) {
    let frame = unsafe bytes.span.bytes
    guard case .frame(let header) = FrameScan(frame, at: 0, maxLength: 1 << 24), header.frameSize == bytes.count,
      let operation = Operation(rawValue: header.kind)
    else { return nil }
    self.init(id: header.id)
    self.operation = operation.vectorName
    store = header.detail
    guard decodeRequest(operation, frame.extracting(header.body(at: 0))) else { return nil }
  }

  private mutating func decodeRequest(_ operation: Operation, _ body: RawSpan) -> Bool {
    switch operation {
    case .hello:
      guard let hello = try? ClientHello(body: body) else { return false }
      (lowestVersion, highestVersion) = (hello.versions.lowerBound, hello.versions.upperBound)
      (features, credit, name) = (hello.features, hello.credit, hello.name)
      token = hello.token.isEmpty ? nil : hello.token
    case .credit:
      credit = body.integer(at: 0, as: UInt32.self)
      return body.byteCount == 4
    case .storeOpen, .storeDrop, .indexDelete: name = body.toString()
    case .storeCreate:
      guard let creation = NamedStoreRequest(body) else { return false }
      (name, specification) = (creation.name, creation.argument)
    case .storeMove:
      guard let move = NamedStoreRequest(body) else { return false }
      (name, node) = (move.name, move.argument)
    case .storeOpenStale:
      guard let opening = StaleOpenRequest(body) else { return false }
      (name, maxStaleness) = (opening.name, opening.maxStaleness)
    case .get: keyHex = body.toArray().hex
    case .getRange:
      guard let range = RangeRequest(body) else { return false }
      (offset, count, ifRevision) = (range.offset, UInt64(range.count), range.revision)
      keyHex = body.extracting(range.key).toArray().hex
    case .getMany, .deleteMany:
      guard var keys = KeyList(body) else { return false }
      var found: [String] = []
      while let key = keys.next(body) { found.append(body.extracting(key).toArray().hex) }
      keysHex = found
      return keys.isComplete(body) && found.count == keys.count
    case .put, .putMany: return decodeWrites(operation, body)
    case .delete: return decodeDelete(body)
    case .count: prefixHex = body.toArray().hex
    case .page, .all: return decodeScan(operation, body)
    case .watch:
      guard let watch = WatchRequest(body) else { return false }
      (from, incarnation, prefixHex) = (watch.from, watch.incarnation, body.extracting(watch.prefix).toArray().hex)
      if watch.isKeysOnly { keysOnly = true }
    case .find: return decodeFind(body)
    case .aggregate:
      guard let request = AggregateRequest(body) else { return false }
      selector = body.extracting(request.selector).toString()
      aggregation = body.extracting(request.aggregation).toString()
      time = request.time
      if request.isExplained { explain = true }
    case .changeMatching:
      guard let request = ChangeMatchingRequest(body) else { return false }
      if request.isDryRun { dryRun = true }
      time = request.time
      selector = body.extracting(request.selector).toString()
      if request.isDelete { delete = true } else { update = body.extracting(request.update).toString() }
    case .apply: return decodeOperations(body)
    case .indexEnsure: definition = body.toString()
    case .uploadPart:
      guard let part = UploadPart(body) else { return false }
      (upload, offset, bytesHex) = (part.number, part.offset, body.extracting(part.bytes).toArray().hex)
    case .uploadPut:
      guard let put = UploadPut(body) else { return false }
      (upload, size, records) = (put.number, put.size, [RecordFields(put.write, in: body)])
    case .uploadDiscard:
      upload = body.integer(at: 0, as: UInt64.self)
      return body.byteCount == 8
    case .rulesCheck: question = body.toString()
    case .connections:
      most = body.integer(at: 0, as: UInt32.self)
      return most != nil && body.byteCount == 4
    case .cancel, .ping, .stats, .slowLog, .storeClose, .storeList, .deleteAll, .indexList, .uploadBegin, .whoami,
      .tokenList, .cluster, .consoleLink:
      return body.byteCount == 0
    }
    return true
  }

  private mutating func decodeFind(_ body: RawSpan) -> Bool {
    guard let find = FindRequest(body) else { return false }
    if find.isCountOnly { countOnly = true }
    if find.isExplained { explain = true }
    (limit, skip) = (find.limit, find.skip)
    (selector, sort) = (body.extracting(find.selector).toString(), body.extracting(find.sort).toString())
    (fields, bookmark) = (body.extracting(find.fields).toString(), body.extracting(find.bookmark).toString())
    if !find.index.isEmpty { index = body.extracting(find.index).toString() }
    time = find.time
    return true
  }

  private mutating func decodeWrites(_ operation: Operation, _ body: RawSpan) -> Bool {
    var offset = operation == .put ? 0 : 4
    guard let count = operation == .put ? 1 : body.integer(at: 0, as: UInt32.self) else { return false }
    var found: [RecordFields] = []
    for _ in 0..<count {
      guard let write = WriteRecord(body, at: offset) else { return false }
      found.append(RecordFields(write, in: body))
      offset = write.end
    }
    records = found
    return offset == body.byteCount
  }

  private mutating func decodeOperations(_ body: RawSpan) -> Bool {
    guard let count = body.integer(at: 0, as: UInt32.self) else { return false }
    var offset = 4
    var found: [RecordFields] = []
    for _ in 0..<count {
      guard let record = ApplyRecord(body, at: offset) else { return false }
      found.append(RecordFields(record, in: body))
      offset = record.end
    }
    records = found
    return offset == body.byteCount
  }

  private mutating func decodeDelete(_ body: RawSpan) -> Bool {
    guard let flags = body.integer(at: 0, as: UInt8.self), flags & ~RecordFlags.ifRevision == 0 else { return false }
    if flags != 0 {
      guard let revision = body.integer(at: 1, as: UInt64.self) else { return false }
      ifRevision = revision
    }
    keyHex = body.extracting((flags == 0 ? 1 : 9)..<body.byteCount).toArray().hex
    return true
  }

  private mutating func decodeScan(_ operation: Operation, _ body: RawSpan) -> Bool {
    guard let scan = ScanRequest(body, of: operation) else { return false }
    prefixHex = body.extracting(scan.prefix).toArray().hex
    if let cursor = scan.cursor { cursorHex = body.extracting(cursor).toArray().hex }
    if scan.isReverse { reverse = true }
    if scan.isKeysOnly { keysOnly = true }
    if operation == .page {
      limit = UInt32(scan.limit)
      offset = scan.offset
    }
    return true
  }
}

extension RecordFields {
  fileprivate func appendWrite(to buffer: inout ByteBuffer) {
    let (key, value) = ([UInt8](hex: keyHex!), [UInt8](hex: valueHex!))
    unsafe buffer.appendWrite(
      kind: kind == "list" ? .list : .single, expiry: expireAfterMilliseconds ?? 0, ifAbsent: ifAbsent ?? false,
      ifRevision: ifRevision, key: key.span.bytes, value: value.span.bytes)
  }

  fileprivate func appendUploadPut(_ number: UInt64, size: UInt64, to buffer: inout ByteBuffer) {
    let key = [UInt8](hex: keyHex!)
    unsafe buffer.appendUploadPut(
      number, size: size, kind: kind == "list" ? .list : .single, expiry: expireAfterMilliseconds ?? 0,
      ifAbsent: ifAbsent ?? false, ifRevision: ifRevision, key: key.span.bytes)
  }

  fileprivate init(_ write: WriteRecord, in body: RawSpan) {
    self.init(kind: "\(write.kind)")
    keyHex = body.extracting(write.key).toArray().hex
    let value = body.extracting(write.value)
    valueHex = value.toArray().hex
    if write.kind == .list { elementsHex = ListValue.decode(value)?.map(\.hex) }
    if write.flags & RecordFlags.expiry != 0 { expireAfterMilliseconds = write.expiry }
    if write.flags & RecordFlags.ifAbsent != 0 { ifAbsent = true }
    if write.flags & RecordFlags.ifRevision != 0 { ifRevision = write.revision }
  }
}

extension RecordFields {
  private static let operations: [(ApplyRecord.Kind, String)] = [
    (.putSingle, "single"), (.putList, "list"), (.delete, "delete"), (.update, "update"), (.check, "check"),
  ]

  fileprivate func appendOperation(to buffer: inout ByteBuffer) {
    let (key, value) = ([UInt8](hex: keyHex!), [UInt8](hex: valueHex!))
    unsafe buffer.appendApply(
      Self.operations.first { $0.1 == kind }!.0, expiry: expireAfterMilliseconds ?? 0, ifAbsent: ifAbsent ?? false,
      ifRevision: ifRevision, creates: create ?? false, key: key.span.bytes, value: value.span.bytes)
  }

  fileprivate init(_ record: ApplyRecord, in body: RawSpan) {
    self.init(kind: Self.operations.first { $0.0 == record.kind }!.1)
    keyHex = body.extracting(record.key).toArray().hex
    let value = body.extracting(record.value)
    valueHex = value.toArray().hex
    if record.valueKind == .list { elementsHex = ListValue.decode(value)?.map(\.hex) }
    if record.flags & RecordFlags.expiry != 0 { expireAfterMilliseconds = record.expiry }
    if record.flags & RecordFlags.ifAbsent != 0 { ifAbsent = true }
    if record.flags & RecordFlags.ifRevision != 0 { ifRevision = record.revision }
    if record.flags & RecordFlags.create != 0 { create = true }
  }
}

/// Converts replies between a vector's fields and bytes, with the module's own encoders and decoders.
extension Fields {
  /// Returns the bytes of the reply that the fields describe.
  func encodedReply() -> [UInt8] {
    var buffer = ByteBuffer()
    if outcome != Outcome.done.rawValue {
      buffer.appendError(ErrorCode.allCases.first { "\($0)" == code }!, id: id, message: message!)
      return buffer.toArray()
    }
    if to == Operation.hello.vectorName {
      buffer.appendReply(
        ServerHello(
          version: version!, features: features!, maxFrameSize: maxFrameSize!, maxValueSize: maxValueSize!,
          maxKeySize: maxKeySize!, maxOpenStores: maxOpenStores!, maxRequestsInFlight: maxRequestsInFlight!,
          maxKeyCount: maxKeyCount!, name: name!), id: id)
      return buffer.toArray()
    }
    if let number = revision ?? count ?? upload {
      buffer.appendReply(id: id, number: number)
      return buffer.toArray()
    }
    let start = buffer.beginReply(id: id, more: more!)
    if let created { buffer.append(EnsuredIndex(name: name!, isCreated: created)) }
    if let text = indexes ?? identity ?? decisions ?? tokens ?? cluster ?? console { buffer.append(text) }
    if let changed { buffer.append(changed.changes) }
    if let handle { buffer.append(OpenedStore(handle: handle, engine: engine!)) }
    for figure in figures ?? [] { buffer.append(figure.figure) }
    for entry in slow ?? [] { buffer.append(entry.entry) }
    for connection in connections ?? [] { buffer.append(connection.connection) }
    for store in stores ?? [] { buffer.append(store.store) }
    if let size { buffer.append(size) }
    for record in records ?? [] { record.appendEntry(to: &buffer) }
    if let through { buffer.append(through) }
    for change in changes ?? [] { change.appendChange(to: &buffer) }
    buffer.endFrame(start)
    return buffer.toArray()
  }

  /// Decodes the fields of the reply in `bytes` to the operation `to`, or returns nil if it is not complete and
  /// well-formed.
  init?(reply bytes: [UInt8], to: String) {
    let frame = unsafe bytes.span.bytes
    guard case .frame(let header) = FrameScan(frame, at: 0, maxLength: 1 << 24), header.frameSize == bytes.count
    else { return nil }
    let body = frame.extracting(header.body(at: 0))
    self.init(id: header.id)
    self.to = to
    outcome = header.kind
    more = header.flags & Frame.more != 0
    guard header.kind == Outcome.done.rawValue else {
      code = ErrorCode(rawValue: header.detail).map { "\($0)" }
      message = body.toString()
      return
    }
    guard decodeReply(Operation.allCases.first { $0.vectorName == to }, body) else { return nil }
  }

  private mutating func decodeReply(_ operation: Operation?, _ body: RawSpan) -> Bool {
    switch operation {
    case .hello:
      guard let hello = ServerHello(body: body) else { return false }
      (version, features, name) = (hello.version, hello.features, hello.name)
      (maxFrameSize, maxValueSize, maxKeySize) = (hello.maxFrameSize, hello.maxValueSize, hello.maxKeySize)
      (maxOpenStores, maxRequestsInFlight, maxKeyCount) = (
        hello.maxOpenStores, hello.maxRequestsInFlight, hello.maxKeyCount
      )
    case .stats:
      figures = Figure.decode(body)?.map { FigureFields($0) }
      return figures != nil
    case .slowLog:
      slow = SlowLogRecord.decode(body)?.map { SlowFields($0) }
      return slow != nil
    case .connections:
      connections = ConnectionStatistics.decode(body)?.map { ConnectionFields($0) }
      return connections != nil
    case .storeOpen, .storeOpenStale:
      guard let opened = OpenedStore(body) else { return false }
      (handle, engine) = (opened.handle, opened.engine)
    case .storeList:
      stores = ListedStore.decode(body)?.map { StoreFields($0) }
      return stores != nil
    case .uploadBegin:
      upload = body.integer(at: 0, as: UInt64.self)
      return body.byteCount == 8
    case .put, .putMany, .apply, .uploadPut:
      revision = body.integer(at: 0, as: UInt64.self)
      return body.byteCount == 8
    case .delete, .deleteMany, .deleteAll, .count:
      count = body.integer(at: 0, as: UInt64.self)
      return body.byteCount == 8
    case .get, .getMany, .page, .all: return decodeEntries(body)
    case .getRange:
      guard let range = RangeReply(body) else { return false }
      (size, records) = (range.valueSize, [RecordFields(range.record, in: body)])
    case .find, .aggregate: return decodeFound(body)
    case .changeMatching:
      changed = MatchingChanges(body).map { ChangedFields($0) }
      return changed != nil
    case .indexEnsure:
      guard let ensured = EnsuredIndex(body) else { return false }
      (created, name) = (ensured.isCreated, ensured.name)
    case .indexList: indexes = body.toString()
    case .whoami: identity = body.toString()
    case .rulesCheck: decisions = body.toString()
    case .tokenList: tokens = body.toString()
    case .cluster: cluster = body.toString()
    case .consoleLink: console = body.toString()
    case .watch: return decodeChanges(body)
    case .ping, .storeClose, .storeCreate, .storeDrop, .storeMove, .indexDelete, .uploadPart, .uploadDiscard:
      return body.byteCount == 0
    case .credit, .cancel, nil: return false
    }
    return true
  }

  private mutating func decodeEntries(_ body: RawSpan) -> Bool {
    var found: [RecordFields] = []
    var offset = 0
    while offset < body.byteCount {
      guard let entry = EntryRecord(body, at: offset) else { return false }
      found.append(RecordFields(entry, in: body))
      offset = entry.end
    }
    records = found
    return true
  }

  private mutating func decodeFound(_ body: RawSpan) -> Bool {
    var found: [RecordFields] = []
    var offset = 0
    while offset < body.byteCount {
      if let entry = EntryRecord(body, at: offset) {
        found.append(RecordFields(entry, in: body))
        offset = entry.end
      } else if let result = FindResult(body, at: offset) {
        found.append(RecordFields(result))
        offset = body.byteCount
      } else {
        return false
      }
    }
    records = found
    return true
  }
}

extension Fields {
  private mutating func decodeChanges(_ body: RawSpan) -> Bool {
    through = body.integer(at: 0, as: UInt64.self)
    var found: [RecordFields] = []
    var offset = ChangeRecord.throughSize
    while offset < body.byteCount {
      guard let change = ChangeRecord(body, at: offset) else { return false }
      found.append(RecordFields(change, in: body))
      offset = change.end
    }
    changes = found
    return through != nil
  }
}

extension RecordFields {
  private static let kinds: [(ChangeKind, String)] = [
    (.single, "single"), (.list, "list"), (.deleted, "deleted"), (.allDeleted, "all-deleted"), (.lost, "lost"),
    (.incarnation, "incarnation"),
  ]

  fileprivate func appendChange(to buffer: inout ByteBuffer) {
    let (key, value) = ([UInt8](hex: keyHex!), [UInt8](hex: valueHex!))
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        unsafe buffer.appendChange(
          Self.kinds.first { $0.1 == kind }!.0, revision: revision!, expiry: expireAfterMilliseconds ?? 0,
          changesOnlyExpiry: onlyExpiry ?? false, key: key, value: value)
      }
    }
  }

  fileprivate init(_ change: ChangeRecord, in body: RawSpan) {
    self.init(kind: Self.kinds.first { $0.0 == change.kind }!.1)
    keyHex = body.extracting(change.key).toArray().hex
    valueHex = body.extracting(change.value).toArray().hex
    if change.expiry != 0 { expireAfterMilliseconds = change.expiry }
    if change.changesOnlyExpiry { onlyExpiry = true }
    revision = change.revision
  }

  fileprivate func appendEntry(to buffer: inout ByteBuffer) {
    guard kind != "absent" else { return buffer.appendMissingEntry() }
    guard kind != "result" else {
      return buffer.append(
        FindResult(
          revision: revision!, examinedDocuments: examinedDocuments!, examinedKeys: examinedKeys!, found: found!,
          nanoseconds: nanoseconds!, text: text!))
    }
    let (key, value) = ([UInt8](hex: keyHex!), [UInt8](hex: valueHex!))
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        unsafe buffer.appendEntry(
          kind: kind == "list" ? .list : .single, revision: revision!, expiry: expireAfterMilliseconds ?? 0, key: key,
          value: value)
      }
    }
  }

  fileprivate init(_ entry: EntryRecord, in body: RawSpan) {
    guard let kind = entry.kind else {
      self.init(kind: "absent")
      return
    }
    self.init(kind: "\(kind)")
    keyHex = body.extracting(entry.key).toArray().hex
    let value = body.extracting(entry.value)
    valueHex = value.toArray().hex
    if kind == .list { elementsHex = ListValue.decode(value)?.map(\.hex) }
    if entry.expiry != 0 { expireAfterMilliseconds = entry.expiry }
    revision = entry.revision
  }

  fileprivate init(_ result: FindResult) {
    self.init(kind: "result")
    (revision, found, nanoseconds, text) = (result.revision, result.found, result.nanoseconds, result.text)
    (examinedDocuments, examinedKeys) = (result.examinedDocuments, result.examinedKeys)
  }
}

extension Operation {
  /// The operation's name in the specification and the vectors: `store-open` for `storeOpen`.
  var vectorName: String {
    "\(self)".map { $0.isUppercase ? "-\($0.lowercased())" : String($0) }.joined()
  }
}
