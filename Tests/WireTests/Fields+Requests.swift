import Wire

/// Converts requests between a vector's fields and bytes, with the module's own encoders and decoders.
extension Fields {
  /// Returns the bytes of the request that the fields describe.
  func encodedRequest() -> [UInt8] {
    var buffer = ByteBuffer()
    let operation = Operation.allCases.first { $0.vectorName == self.operation }!
    if operation == .hello {
      buffer.appendRequest(
        ClientHello(versions: lowestVersion!...highestVersion!, features: features!, credit: credit!, name: name!),
        id: id)
      return buffer.toArray()
    }
    let start = buffer.beginRequest(operation, store: store!, id: id)
    switch operation {
    case .credit: buffer.append(credit!)
    case .storeOpen, .storeDrop: buffer.append(name!)
    case .storeCreate: buffer.append(StoreCreation(name: name!, specification: specification!))
    case .get: buffer.append([UInt8](hex: keyHex!))
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
      unsafe buffer.appendWatch(from: from!, prefix: prefix.span.bytes, keysOnly: keysOnly ?? false)
    case .hello, .cancel, .ping, .stats, .slowLog, .storeClose, .storeList, .deleteAll: break
    }
    buffer.endFrame(start)
    return buffer.toArray()
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
    case .credit:
      credit = body.integer(at: 0, as: UInt32.self)
      return body.byteCount == 4
    case .storeOpen, .storeDrop: name = body.toString()
    case .storeCreate:
      guard let creation = StoreCreation(body) else { return false }
      (name, specification) = (creation.name, creation.specification)
    case .get: keyHex = body.toArray().hex
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
      (from, prefixHex) = (watch.from, body.extracting(watch.prefix).toArray().hex)
      if watch.isKeysOnly { keysOnly = true }
    case .connections:
      most = body.integer(at: 0, as: UInt32.self)
      return most != nil && body.byteCount == 4
    case .cancel, .ping, .stats, .slowLog, .storeClose, .storeList, .deleteAll: return body.byteCount == 0
    }
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

extension Operation {
  /// The operation's name in the specification and the vectors: `store-open` for `storeOpen`.
  var vectorName: String {
    "\(self)".map { $0.isUppercase ? "-\($0.lowercased())" : String($0) }.joined()
  }
}
