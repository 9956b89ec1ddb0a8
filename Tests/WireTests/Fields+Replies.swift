import Wire

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
          version: version!, features: features!, maxFrameSize: largestFrame!, maxValueSize: largestValue!,
          maxKeySize: largestKey!, maxOpenStores: mostStores!, maxRequestsInFlight: mostRequests!,
          maxKeyCount: mostKeys!, name: name!), id: id)
      return buffer.toArray()
    }
    if let number = revision ?? count {
      buffer.appendReply(id: id, number: number)
      return buffer.toArray()
    }
    let start = buffer.beginReply(id: id, more: more!)
    if let handle { buffer.append(OpenedStore(handle: handle, engine: engine!)) }
    for figure in figures ?? [] { buffer.append(Figure(figure.name, figure.value)) }
    for entry in slow ?? [] { buffer.append(entry.entry) }
    for connection in connections ?? [] { buffer.append(connection.connection) }
    for store in stores ?? [] {
      buffer.append(ListedStore(name: store.name, specification: store.specification, entries: store.entries))
    }
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
      (largestFrame, largestValue, largestKey) = (hello.maxFrameSize, hello.maxValueSize, hello.maxKeySize)
      (mostStores, mostRequests, mostKeys) = (hello.maxOpenStores, hello.maxRequestsInFlight, hello.maxKeyCount)
    case .stats:
      figures = Figure.decode(body)?.map { FigureFields(name: $0.name, value: $0.value) }
      return figures != nil
    case .slowLog:
      slow = SlowLogRecord.decode(body)?.map { SlowFields($0) }
      return slow != nil
    case .connections:
      connections = ConnectionStatistics.decode(body)?.map { ConnectionFields($0) }
      return connections != nil
    case .storeOpen:
      guard let opened = OpenedStore(body) else { return false }
      (handle, engine) = (opened.handle, opened.engine)
    case .storeList:
      stores = ListedStore.decode(body)?.map {
        StoreFields(name: $0.name, specification: $0.specification, entries: $0.entries)
      }
      return stores != nil
    case .put, .putMany:
      revision = body.integer(at: 0, as: UInt64.self)
      return body.byteCount == 8
    case .delete, .deleteMany, .deleteAll, .count:
      count = body.integer(at: 0, as: UInt64.self)
      return body.byteCount == 8
    case .get, .getMany, .page, .all: return decodeEntries(body)
    case .watch: return decodeChanges(body)
    case .ping, .storeClose, .storeCreate, .storeDrop: return body.byteCount == 0
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
  ]

  fileprivate func appendChange(to buffer: inout ByteBuffer) {
    let (key, value) = ([UInt8](hex: keyHex!), [UInt8](hex: valueHex!))
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        unsafe buffer.appendChange(
          Self.kinds.first { $0.1 == kind }!.0, revision: revision!, expiry: expireAfterMilliseconds ?? 0, key: key,
          value: value)
      }
    }
  }

  fileprivate init(_ change: ChangeRecord, in body: RawSpan) {
    self.init(kind: Self.kinds.first { $0.0 == change.kind }!.1)
    keyHex = body.extracting(change.key).toArray().hex
    valueHex = body.extracting(change.value).toArray().hex
    if change.expiry != 0 { expireAfterMilliseconds = change.expiry }
    revision = change.revision
  }

  fileprivate func appendEntry(to buffer: inout ByteBuffer) {
    guard kind != "absent" else { return buffer.appendMissingEntry() }
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
}
