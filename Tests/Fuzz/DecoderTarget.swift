import Wire

/// Every decoder of the wire protocol, over any bytes. It is right when nothing traps, and when what decodes lies inside the bytes.
///
/// The first byte picks the operation whose bodies are decoded; the rest is the body, and also taken for a stream of frames.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDecoders(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 0 else { return 0 }
  let bytes = unsafe RawSpan(_unsafeStart: start, byteCount: count)
  let body = bytes.extracting(1..<count)
  scanFrames(body)
  decodeText(body)
  switch Operation(rawValue: bytes.integer(at: 0, as: UInt8.self)! & 0x1F) {
  case .hello:
    if let hello = try? ClientHello(body: body) {
      check(hello.credit > 0 && hello.versions.lowerBound <= hello.versions.upperBound)
    }
    _ = ServerHello(body: body)
  case .stats: _ = Figure.decode(body)
  case .slowLog: _ = SlowWakeUp.decode(body)
  case .connections: _ = BusyConnection.decode(body)
  case .storeOpen: _ = OpenedStore(body)
  case .storeCreate: _ = StoreCreation(body)
  case .storeList: _ = ListedStore.decode(body)
  case .get: checkKey(body)
  case .getMany, .deleteMany: decodeKeys(body)
  case .put, .putMany: decodeWrites(body)
  case .page: decodeScan(body, of: .page)
  case .all: decodeScan(body, of: .all)
  case .watch: decodeWatch(body)
  default: decodeEntries(body)
  }
  return 0
}

private func check(_ condition: Bool, line: Int = #line) {
  if !condition { fatalError("a decoder went wrong, line \(line)") }
}

/// Goes through the frames of a stream as a connection does, and sees that every beginning of the stream agrees.
private func scanFrames(_ stream: RawSpan) {
  var place = 0
  scan: while true {
    switch FrameScan(stream, at: place, largest: 1 << 16) {
    case .frame(let header):
      let end = place + header.frameSize
      check(header.bodySize >= 0 && end <= stream.byteCount)
      check(header.body(at: place).upperBound == end)
      if case .partial(let size) = FrameScan(stream.extracting(0..<end - 1), at: place, largest: 1 << 16) {
        check(size == header.frameSize || header.frameSize <= Frame.headerSize)
      } else {
        check(false)
      }
      place = end
    case .partial(let size):
      check(size > stream.byteCount - place)
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
  check(Key.isValid(key) == (isText && (1...Key.largest).contains(bytes.count)))
}

private func decodeKeys(_ body: RawSpan) {
  guard var keys = KeyList(body) else { return check(body.byteCount < 4) }
  var place = 4
  while let key = keys.next(body) {
    check(key.lowerBound == place + 2 && key.upperBound <= body.byteCount)
    checkKey(body.extracting(key))
    place = key.upperBound
  }
  if keys.isComplete(body) { check(place == body.byteCount) }
}

private func decodeWrites(_ body: RawSpan) {
  var place = 0
  var again = ByteBuffer()
  while let write = WriteRecord(body, at: place) {
    check(write.key.lowerBound >= place + 8 && write.key.upperBound == write.value.lowerBound)
    check(write.end > place && write.end <= body.byteCount)
    if write.flags & RecordFlags.expiry == 0 || write.expiry != 0 {
      let hasRevision = write.flags & RecordFlags.ifRevision != 0
      again.removeAll()
      again.appendWrite(
        kind: write.kind, expiry: write.expiry, ifAbsent: write.flags & RecordFlags.ifAbsent != 0,
        ifRevision: hasRevision ? write.revision : nil, key: body.extracting(write.key),
        value: body.extracting(write.value))
      check(again.toArray() == body.extracting(place..<write.end).toArray())
    }
    place = write.end
  }
}

private func decodeEntries(_ body: RawSpan) {
  var place = 0
  while let entry = EntryRecord(body, at: place) {
    check(entry.key.lowerBound >= place + EntryRecord.headerSize && entry.key.upperBound == entry.value.lowerBound)
    check(entry.end > place && entry.end <= body.byteCount)
    place = entry.end
  }
}

private func decodeWatch(_ body: RawSpan) {
  if let watch = WatchRequest(body) {
    var again = ByteBuffer()
    again.appendWatch(from: watch.from, prefix: body.extracting(watch.prefix), keysOnly: watch.isKeysOnly)
    check(again.toArray() == body.toArray())
  }
  var place = 0
  while let change = ChangeRecord(body, at: place) {
    check(change.key.lowerBound >= place + ChangeRecord.headerSize && change.key.upperBound == change.value.lowerBound)
    check(change.end > place && change.end <= body.byteCount)
    place = change.end
  }
}

private func decodeScan(_ body: RawSpan, of operation: Operation) {
  guard let scan = ScanRequest(body, of: operation) else { return }
  let end = scan.cursor?.upperBound ?? scan.prefix.upperBound
  check(end == body.byteCount && scan.limit >= 0)
  check(scan.cursor.map { $0.lowerBound == scan.prefix.upperBound } ?? true)
}
