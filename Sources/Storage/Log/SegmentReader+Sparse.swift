/// Why a record with values apart can't be read.
enum SparseError: Error {
  case damaged(String)
  case failed(LogError)
}

/// Reading records that have values apart: everything but those values is gathered in `sparse`, and is what the record's checksum covers.
extension SegmentReader {
  /// Reads the record at `end` and goes beyond it.
  mutating func readSparse() throws(SparseError) {
    let start = end
    sparseCount = 0
    let bodyStart = CommitBuffer.recordHeaderByteCount
    try gather(start, bodyStart + 8)
    let (length, checksum, revision) = unsafe (
      Int(header.integer(at: 0, as: UInt32.self)), header.integer(at: 4, as: UInt32.self),
      header.integer(at: 8, as: UInt64.self)
    )
    let recordEnd = start + bodyStart + length
    var place = start + bodyStart + 8
    var isIntact = true
    while place < recordEnd { place = try gatherOperation(at: place, recordEnd: recordEnd, &isIntact) }
    let crc = unsafe header.checksum(leavingOut: CommitBuffer.checksumPlace)
    guard crc == checksum else { throw .damaged("a record's checksum is wrong") }
    guard revision > lastRevision, revision <= CommitBuffer.revisions.upperBound else {
      throw .damaged("revisions are out of order")
    }
    guard isIntact else {
      damageEnd = recordEnd
      throw .damaged("a value's checksum is wrong")
    }
    lastRevision = revision
    end = recordEnd
    if !verifiesValues { readByteCount = Self.probeByteCount }
  }

  private var header: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: sparse[..<sparseCount]) }

  /// Adds an operation of the record to `sparse`.
  /// - Parameter isIntact: becomes false when its value is apart and damaged.
  /// - Returns: where the next one begins in the file.
  private mutating func gatherOperation(
    at start: Int, recordEnd: Int, _ isIntact: inout Bool
  ) throws(SparseError) -> Int {
    let malformed = SparseError.damaged("a record's checksum is wrong, or it is not well formed")
    let gathered = sparseCount
    guard recordEnd - start >= CommitBuffer.operationHeaderByteCount else { throw malformed }
    try gather(start, CommitBuffer.operationHeaderByteCount)
    let flags = unsafe sparse[gathered + 1]
    let keyCount = unsafe Int(header.integer(at: gathered + 2, as: UInt16.self))
    let valueCount = unsafe Int(header.integer(at: gathered + 4, as: UInt32.self))
    let isSeparated = flags & CommitBuffer.Flag.separated != 0
    let rest = (flags & CommitBuffer.Flag.expires != 0 ? 8 : 0) + (isSeparated ? 4 : valueCount) + keyCount
    let restStart = start + CommitBuffer.operationHeaderByteCount
    // Before any of it is read: only what is apart may be large.
    guard isSeparated == (valueCount >= CommitBuffer.separatedByteCount),
      rest + (isSeparated ? valueCount : 0) <= recordEnd - restStart
    else { throw malformed }
    try gather(restStart, rest)
    guard let operation = unsafe RecordOperation(in: header, at: gathered, isSparse: true), operation.end == sparseCount
    else { throw malformed }
    guard isSeparated else { return restStart + rest }
    if verifiesValues, try checksum(restStart + rest, valueCount) != operation.valueChecksum { isIntact = false }
    return restStart + rest + valueCount
  }

  /// Adds bytes of the file to `sparse`.
  private mutating func gather(_ place: Int, _ count: Int) throws(SparseError) {
    guard count > 0 else { return }
    if unsafe sparseCount + count > sparse.count {
      let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * (sparseCount + count), alignment: 16)
      unsafe larger.copyMemory(from: header)
      unsafe sparse.deallocate()
      unsafe sparse = larger
    }
    let bytes = unsafe try self.bytes(place, count)
    unsafe (sparse.baseAddress! + sparseCount).copyMemory(from: bytes.baseAddress!, byteCount: count)
    sparseCount += count
  }

  /// Bytes of the file, which are there unless it became shorter.
  private mutating func bytes(_ place: Int, _ count: Int) throws(SparseError) -> UnsafeRawBufferPointer {
    if unsafe bytes(from: place).count < count {
      do throws(LogError) { _ = try read(at: place, max(count, readByteCount)) } catch { throw .failed(error) }
    }
    let bytes = unsafe bytes(from: place)
    guard bytes.count >= count else { throw .damaged("a record is cut short") }
    return unsafe UnsafeRawBufferPointer(rebasing: bytes[..<count])
  }

  private mutating func checksum(_ start: Int, _ byteCount: Int) throws(SparseError) -> UInt32 {
    var (place, crc) = (start, UInt32(0))
    while place < start + byteCount {
      let there = unsafe bytes(from: place).count
      let count = min(there > 0 ? there : Self.pieceByteCount, start + byteCount - place)
      let piece = unsafe try bytes(place, count)
      crc = unsafe piece.checksum(after: crc)
      place += count
    }
    return crc
  }
}
