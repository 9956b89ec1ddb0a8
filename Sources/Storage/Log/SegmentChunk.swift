import Platform

/// What a `SegmentReader` returns: a run of intact records, or one record without its separated values. Valid until the
/// next chunk.
///
/// A run may have headers of frames between records.
@safe
struct SegmentChunk {
  private let bytes: UnsafeRawBufferPointer
  private let offset: Int
  private let frameEnd: Int
  private let isSparse: Bool

  /// - Parameters:
  ///   - offset: The offset of the chunk in the file.
  ///   - frameEnd: The end of the first record's frame in the file.
  ///   - isSparse: Whether the chunk is one record without its separated values. The record's length still includes
  ///     them.
  @inline(__always)
  init(bytes: UnsafeRawBufferPointer, offset: Int, frameEnd: Int, isSparse: Bool) {
    unsafe self.bytes = bytes
    self.offset = offset
    self.frameEnd = frameEnd
    self.isSparse = isSparse
  }

  var isEmpty: Bool { unsafe bytes.count == 0 }

  /// Returns the number of bytes of the file that the chunk stands for.
  /// - Parameter end: The end of the chunk in the file.
  func byteCount(upTo end: Int) -> Int { end - offset }

  /// Calls `body` with every record, including separated values, which are read from the file.
  /// - Parameter end: The end of the chunk in the file.
  func visitRecords(
    of segment: SegmentFile, upTo end: Int, _ body: (UnsafeRawBufferPointer) throws(LogError) -> Void
  ) throws(LogError) {
    guard isSparse else {
      var (start, frameEnd) = (0, frameEnd - offset)
      while unsafe start < bytes.count {
        start = skipFrame(at: start, &frameEnd)
        guard unsafe start < bytes.count else { return }
        let end = unsafe start + bytes.recordByteCount(at: start)
        unsafe try body(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        start = end
      }
      return
    }
    let record = try LogError.wrapping(segment.path) { () throws(SystemError) in
      try segment.file.bytes(at: offset, count: byteCount(upTo: end))
    }
    guard record.count == byteCount(upTo: end) else { return }
    unsafe try record.withBytes { (record) throws(LogError) in unsafe try body(record) }
  }

  /// Returns the beginning of the record at or after an offset, which may be that of a frame's header.
  /// - Parameter frameEnd: The end of the current frame.
  @inline(__always)
  private func skipFrame(at start: Int, _ frameEnd: inout Int) -> Int {
    guard start == frameEnd, unsafe start < bytes.count else { return start }
    let first = start &+ LogFrame.byteCount
    frameEnd = unsafe first &+ Int(bytes.integer(at: start, as: UInt32.self))
    return first
  }

  /// Calls `body` with every operation, its revision, and the offset of its value in the file.
  /// - Returns: The number of records.
  @inline(__always) @discardableResult
  func visit<Failure: Error>(_ body: (RecordOperation, UInt64, Int) throws(Failure) -> Void) throws(Failure) -> Int {
    var (start, omitted, count) = (0, 0, 0)
    var frameEnd = frameEnd &- offset
    while true {
      start = skipFrame(at: start, &frameEnd)
      guard unsafe start < bytes.count else { return count }
      var end = unsafe bytes.count
      if !isSparse {
        end = unsafe start &+ bytes.recordByteCount(at: start)
      }
      let record = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<end])
      let revision = unsafe record.integer(at: 8, as: UInt64.self)
      var offset = CommitBuffer.recordHeaderByteCount &+ 8
      while offset < record.count {
        guard let operation = unsafe RecordOperation(in: record, at: offset, isSparse: isSparse) else {
          preconditionFailure("a verified record is malformed")
        }
        let valueOffset = unsafe self.offset &+ start &+ operation.end &- operation.value.count &+ omitted
        try body(operation, revision, valueOffset)
        unsafe omitted &+= operation.valueByteCount &- operation.value.count
        offset = operation.end
      }
      count &+= 1
      start = end
    }
  }
}
