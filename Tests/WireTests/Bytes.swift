import Wire

/// The decoders over plain arrays: a span can't be an argument inside `#expect`.
extension [UInt8] {
  func scanned(at offset: Int = 0, largest: Int) -> FrameScan {
    unsafe FrameScan(span.bytes, at: offset, largest: largest)
  }
  func write(at offset: Int = 0) -> WriteRecord? { unsafe WriteRecord(span.bytes, at: offset) }
  func entry(at offset: Int = 0) -> EntryRecord? { unsafe EntryRecord(span.bytes, at: offset) }
  func scanRequest(of operation: Operation) -> ScanRequest? { unsafe ScanRequest(span.bytes, of: operation) }
  var isKey: Bool { unsafe Key.isValid(span.bytes) }
  var isListValue: Bool { unsafe ListValue.isValid(span.bytes) }
  var elements: [[UInt8]]? { unsafe ListValue.decode(span.bytes) }

  /// What the bytes say as a key list: how many keys they promise, those that are there, and whether that is all.
  var keyList: (count: Int, keys: [[UInt8]], isComplete: Bool)? {
    guard var list = unsafe KeyList(span.bytes) else { return nil }
    var keys: [[UInt8]] = []
    while let key = unsafe list.next(span.bytes) { keys.append(Array(self[key])) }
    return unsafe (list.count, keys, list.isComplete(span.bytes))
  }
}
