import Wire

/// Runs every decoder of the wire protocol on arbitrary bytes. A run passes if nothing traps, everything that is
/// decoded lies within the bytes, and encoding it again gives the same bytes.
///
/// The first byte selects the operation whose bodies are decoded. The rest is the body, and is also scanned as a stream
/// of frames.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDecoders(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 0 else { return 0 }
  let bytes = unsafe RawSpan(_unsafeStart: start, byteCount: count)
  let body = bytes.extracting(1..<count)
  scanFrames(body)
  decodeText(body)
  switch Operation(rawValue: bytes.integer(at: 0, as: UInt8.self)! & 0x3F) {
  case .hello:
    if let hello = try? ClientHello(body: body) {
      check(hello.credit > 0 && hello.versions.lowerBound <= hello.versions.upperBound)
    }
    _ = ServerHello(body: body)
  case .stats: _ = Figure.decode(body)
  case .slowLog: _ = SlowLogRecord.decode(body)
  case .connections: _ = ConnectionStatistics.decode(body)
  case .storeOpen: _ = OpenedStore(body)
  case .storeOpenStale: _ = StaleOpenRequest(body)
  case .storeCreate, .storeMove: _ = NamedStoreRequest(body)
  case .storeList: _ = ListedStore.decode(body)
  case .get: checkKey(body)
  case .getRange: decodeRange(body)
  case .uploadPart, .uploadPut: decodeUpload(body)
  case .getMany, .deleteMany: decodeKeys(body)
  case .put, .putMany: decodeWrites(body)
  case .page: decodeScan(body, of: .page)
  case .all: decodeScan(body, of: .all)
  case .watch: decodeWatch(body)
  case .find: decodeFind(body)
  case .aggregate: decodeAggregate(body)
  case .changeMatching: decodeChangeMatching(body)
  case .apply: decodeOperations(body)
  case .indexEnsure: decodeEnsuredIndex(body)
  default: decodeEntries(body)
  }
  return 0
}

private func check(_ condition: Bool, line: Int = #line) {
  if !condition { fatalError("a decoder failed the check in line \(line)") }
}

/// Whether a text may have been decoded from bytes that are not UTF-8.
private func hasReplacement(_ text: String) -> Bool { text.unicodeScalars.contains("\u{FFFD}") }

private func decodeRange(_ body: RawSpan) {
  if let range = RangeRequest(body) {
    check(range.key.lowerBound <= body.byteCount && range.key.upperBound == body.byteCount)
  }
  if let reply = RangeReply(body) {
    check(reply.record.end == body.byteCount && reply.record.value.count <= reply.valueSize)
  }
}

private func decodeUpload(_ body: RawSpan) {
  if let part = UploadPart(body) { check(part.bytes.upperBound == body.byteCount) }
  if let put = UploadPut(body) { check(put.write.end == body.byteCount && put.write.value.isEmpty) }
}

/// Scans the frames of a stream as a connection does, and checks that a truncated frame is partial.
private func scanFrames(_ stream: RawSpan) {
  var offset = 0
  scan: while true {
    switch FrameScan(stream, at: offset, maxLength: 1 << 16) {
    case .frame(let header):
      let end = offset + header.frameSize
      check(header.bodySize >= 0 && end <= stream.byteCount)
      check(header.body(at: offset).upperBound == end)
      if case .partial(let size) = FrameScan(stream.extracting(0..<end - 1), at: offset, maxLength: 1 << 16) {
        check(size == header.frameSize || header.frameSize <= Frame.headerSize)
      } else {
        check(false)
      }
      offset = end
    case .partial(let size):
      check(size > stream.byteCount - offset)
      break scan
    case .invalid(let length):
      check(length < 8 || length > 1 << 16)
      break scan
    }
  }
}

private func decodeText(_ body: RawSpan) {
  if let elements = ListValue.decode(body) {
    check(ListValue.isValid(body))
    check(ListValue.encode(elements) == body.toArray())
  } else {
    check(!ListValue.isValid(body))
  }
}

private func checkKey(_ key: RawSpan) {
  let bytes = key.toArray()
  let isText = String(validating: bytes, as: UTF8.self) != nil
  check(Key.isValid(key) == (isText && (1...Key.maxSize).contains(bytes.count)))
}

private func decodeKeys(_ body: RawSpan) {
  guard var keys = KeyList(body) else { return check(body.byteCount < 4) }
  var offset = 4
  while let key = keys.next(body) {
    check(key.lowerBound == offset + 2 && key.upperBound <= body.byteCount)
    checkKey(body.extracting(key))
    offset = key.upperBound
  }
  if keys.isComplete(body) { check(offset == body.byteCount) }
}

private func decodeWrites(_ body: RawSpan) {
  var offset = 0
  var encoded = ByteBuffer()
  while let write = WriteRecord(body, at: offset) {
    check(write.key.lowerBound >= offset + 8 && write.key.upperBound == write.value.lowerBound)
    check(write.end > offset && write.end <= body.byteCount)
    if write.flags & RecordFlags.expiry == 0 || write.expiry != 0 {
      let hasRevision = write.flags & RecordFlags.ifRevision != 0
      encoded.removeAll()
      encoded.appendWrite(
        kind: write.kind, expiry: write.expiry, ifAbsent: write.flags & RecordFlags.ifAbsent != 0,
        ifRevision: hasRevision ? write.revision : nil, key: body.extracting(write.key),
        value: body.extracting(write.value))
      check(encoded.toArray() == body.extracting(offset..<write.end).toArray())
    }
    offset = write.end
  }
}

private func decodeOperations(_ body: RawSpan) {
  var offset = 4
  var encoded = ByteBuffer()
  while let record = ApplyRecord(body, at: offset) {
    check(record.key.lowerBound >= offset + 8 && record.key.upperBound == record.value.lowerBound)
    check(record.end > offset && record.end <= body.byteCount)
    if record.flags & RecordFlags.expiry == 0 || record.expiry != 0, record.key.count <= Key.maxSize {
      encoded.removeAll()
      encoded.appendApply(
        record.kind, expiry: record.expiry, ifAbsent: record.flags & RecordFlags.ifAbsent != 0,
        ifRevision: record.flags & RecordFlags.ifRevision != 0 ? record.revision : nil,
        creates: record.flags & RecordFlags.create != 0, key: body.extracting(record.key),
        value: body.extracting(record.value))
      check(encoded.toArray() == body.extracting(offset..<record.end).toArray())
    }
    offset = record.end
  }
}

private func decodeEntries(_ body: RawSpan) {
  var offset = 0
  while let entry = EntryRecord(body, at: offset) {
    check(entry.key.lowerBound >= offset + EntryRecord.headerSize && entry.key.upperBound == entry.value.lowerBound)
    check(entry.end > offset && entry.end <= body.byteCount)
    offset = entry.end
  }
}

private func decodeWatch(_ body: RawSpan) {
  if let watch = WatchRequest(body) {
    var encoded = ByteBuffer()
    encoded.appendWatch(
      from: watch.from, incarnation: watch.incarnation, prefix: body.extracting(watch.prefix),
      keysOnly: watch.isKeysOnly)
    check(encoded.toArray() == body.toArray())
  }
  var offset = 0
  while let change = ChangeRecord(body, at: offset) {
    check(change.key.lowerBound >= offset + ChangeRecord.headerSize && change.key.upperBound == change.value.lowerBound)
    check(change.end > offset && change.end <= body.byteCount)
    offset = change.end
  }
}

private func decodeFind(_ body: RawSpan) {
  var encoded = ByteBuffer()
  if let find = FindRequest(body) {
    let index = body.extracting(find.index).toString()
    encoded.appendFind(
      countOnly: find.isCountOnly, explain: find.isExplained, limit: find.limit, skip: find.skip,
      selector: body.extracting(find.selector), sort: body.extracting(find.sort),
      fields: body.extracting(find.fields), bookmark: body.extracting(find.bookmark), index: index,
      time: find.time)
    check(hasReplacement(index) || encoded.toArray() == body.toArray())
  }
  var offset = 0
  while let entry = EntryRecord(body, at: offset) {
    check(FindResult(body, at: offset) == nil)
    offset = entry.end
  }
  if let result = FindResult(body, at: offset), !hasReplacement(result.text) {
    encoded.removeAll()
    encoded.append(result)
    check(encoded.toArray() == body.extracting(offset..<body.byteCount).toArray())
  }
}

private func decodeAggregate(_ body: RawSpan) {
  guard let request = AggregateRequest(body) else { return }
  var encoded = ByteBuffer()
  encoded.appendAggregate(
    selector: body.extracting(request.selector), aggregation: body.extracting(request.aggregation), time: request.time,
    explain: request.isExplained)
  check(encoded.toArray() == body.toArray())
}

private func decodeChangeMatching(_ body: RawSpan) {
  var encoded = ByteBuffer()
  if let request = ChangeMatchingRequest(body) {
    encoded.appendChangeMatching(
      dryRun: request.isDryRun, selector: body.extracting(request.selector),
      update: request.isDelete ? nil : body.extracting(request.update), time: request.time)
    check(encoded.toArray() == body.toArray())
  }
  if let changes = MatchingChanges(body) {
    encoded.removeAll()
    encoded.append(changes)
    check(encoded.toArray() == body.toArray())
  }
}

private func decodeEnsuredIndex(_ body: RawSpan) {
  guard let ensured = EnsuredIndex(body), !hasReplacement(ensured.name) else { return }
  var encoded = ByteBuffer()
  encoded.append(ensured)
  check(encoded.toArray() == body.toArray())
}

private func decodeScan(_ body: RawSpan, of operation: Operation) {
  guard let scan = ScanRequest(body, of: operation) else { return }
  let end = scan.cursor?.upperBound ?? scan.prefix.upperBound
  check(end == body.byteCount && scan.limit >= 0)
  check(scan.cursor.map { $0.lowerBound == scan.prefix.upperBound } ?? true)
}
