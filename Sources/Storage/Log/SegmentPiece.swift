/// What a `SegmentReader` hands out: whole records, end to end; or a single one without its values apart. Valid until the next piece.
@safe
struct SegmentPiece {
  let bytes: UnsafeRawBufferPointer
  /// Where it begins in the file.
  let offset: Int
  /// Whether it is one record with values apart, and without the bytes of those. Its length still counts them.
  let isSparse: Bool

  var isEmpty: Bool { unsafe bytes.count == 0 }

  /// Calls `body` with every operation, its revision, and where in the file its value begins.
  /// - Returns: how many records there are.
  @inline(__always) @discardableResult
  func visit<Failure: Error>(_ body: (RecordOperation, UInt64, Int) throws(Failure) -> Void) throws(Failure) -> Int {
    var (start, leftOut, count) = (0, 0, 0)
    while unsafe start < bytes.count {
      var end = unsafe bytes.count
      if !isSparse {
        end = unsafe start &+ bytes.recordByteCount(at: start)
      }
      let record = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<end])
      let revision = unsafe record.integer(at: 8, as: UInt64.self)
      var place = CommitBuffer.recordHeaderByteCount &+ 8
      while place < record.count {
        guard let operation = unsafe RecordOperation(in: record, at: place, isSparse: isSparse) else {
          preconditionFailure("it was checked")
        }
        let valueOffset = unsafe offset &+ start &+ operation.end &- operation.value.count &+ leftOut
        try body(operation, revision, valueOffset)
        unsafe leftOut &+= operation.valueByteCount &- operation.value.count
        place = operation.end
      }
      count &+= 1
      start = end
    }
    return count
  }
}
