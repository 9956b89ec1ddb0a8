import Platform

/// A reader that returns the records of a segment in chunks, verified.
///
/// A chunk is a run of intact records, or one record with separated values, which is read without those values, however
/// large they are. The values have checksums of their own, which the reader verifies only on request.
@safe
struct SegmentReader: ~Copyable {
  /// What comes after the last chunk.
  enum State: Equatable {
    /// Another chunk.
    case more
    case sealed(SegmentTrailer)
    /// A length of zero and no trailer: nothing was written from here on, or it is torn.
    case open
    case damaged(String)
  }

  /// The size of a normal read, which stays in the processor's cache while the records are verified and used.
  private static let chunkByteCount = 256 << 10
  /// The size of a read after a skipped value, which another value may follow.
  private static let skippingReadByteCount = 4 << 10

  private let segment: SegmentFile
  /// Whether to read separated values and verify their checksums.
  private let verifiesValues: Bool
  private(set) var state = State.more
  /// The end of the last chunk, and so of the verified part.
  private(set) var end: Int
  /// The end of the current frame, unless the segment was sealed in it; in version 1, which has no frames, never.
  private(set) var frameEnd: Int
  /// The end of the damaged record if its checksum is correct, so that only its contents are damaged; nil if the end is
  /// unknown.
  private var damageEnd: Int?
  /// The end of the part that was on disk when the last frame was written. In version 1, which has no frames, none of the
  /// records are known to be.
  private(set) var synced: Int
  /// The revision of the last record.
  private(set) var lastRevision: UInt64
  /// The size of the next read: smaller where values are skipped.
  private var readByteCount: Int
  /// The bytes of the last read, with their offset in the file and their number.
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: SegmentReader.chunkByteCount, alignment: 16)
  private var bufferStart = 0
  private var bufferCount = 0
  /// The last record with separated values, without those values. The record's checksum covers these bytes.
  private var sparse = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SegmentReader.skippingReadByteCount, alignment: 16)
  private var sparseCount = 0

  /// - Parameter previous: The revision of the last record before the segment, if it is known.
  init(_ segment: SegmentFile, verifiesValues: Bool, after previous: UInt64 = 0) {
    self.segment = segment
    (end, synced) = (segment.header.byteCount, segment.header.byteCount)
    frameEnd = segment.header.salt == nil ? .max : end
    lastRevision = max(previous, max(1, segment.header.firstRevision) - 1)
    self.verifiesValues = verifiesValues
    readByteCount = verifiesValues ? Self.chunkByteCount : Self.chunkByteCount / 4
  }

  deinit {
    unsafe buffer.deallocate()
    unsafe sparse.deallocate()
  }

  /// Continues after a damaged place: after the damaged record if its end is known, and otherwise at the next place that
  /// only the segment's writer can have marked. What clients wrote may look like records.
  /// - Returns: Whether there is such a place.
  mutating func resumeAfterDamage() throws(LogError) -> Bool {
    if let damageEnd {
      end = damageEnd
    } else {
      var next: Int?
      unsafe try SegmentBoundary.search(segment, from: end + 1) { boundary in
        next = boundary.offset
        return false
      }
      guard let next else { return false }
      end = next
      if segment.header.salt != nil { frameEnd = next }
    }
    damageEnd = nil
    state = .more
    return true
  }

  /// Returns the next chunk, or an empty one if there is no other; `state` then says why.
  mutating func next() throws(LogError) -> SegmentChunk {
    var offset = end
    // The chunk may extend into more frames.
    var firstFrameEnd = frameEnd
    var wanted = 0
    while state == .more {
      // The last read may have brought more records.
      if unsafe wanted > 0 || bytes(from: offset).count < 8 {
        let isComplete = try read(at: offset, max(wanted, readByteCount))
        if !isComplete, wanted > bufferCount {
          // The file has become shorter meanwhile.
          state = .damaged("a record is truncated")
          break
        }
      }
      var bytes = unsafe bytes(from: offset)
      wanted = unsafe check(bytes)
      if offset == firstFrameEnd, end > offset {
        // The chunk starts after the header of its first frame.
        offset += LogFrame.byteCount
        firstFrameEnd = unsafe offset + Int(bytes.integer(at: 0, as: UInt32.self))
        unsafe bytes = UnsafeRawBufferPointer(rebasing: bytes[LogFrame.byteCount...])
      }
      if end > offset {
        readByteCount = min(Self.chunkByteCount, 4 * readByteCount)
        return unsafe SegmentChunk(
          bytes: UnsafeRawBufferPointer(rebasing: bytes[..<(end - offset)]), offset: offset, frameEnd: firstFrameEnd,
          isSparse: false)
      }
      if wanted == 0, state == .more {
        do throws(SparseReadError) {
          try readSparse()
        } catch {
          if case .failed(let error) = error { throw error }
          if case .damaged(let reason) = error { state = .damaged(reason) }
          break
        }
        return unsafe SegmentChunk(
          bytes: UnsafeRawBufferPointer(rebasing: sparse[..<sparseCount]), offset: offset, frameEnd: .max,
          isSparse: true)
      }
    }
    return unsafe SegmentChunk(
      bytes: UnsafeRawBufferPointer(start: nil, count: 0), offset: offset, frameEnd: .max, isSparse: false)
  }

  /// Returns what a crash has left after the verified part.
  func tornTail() throws(LogError) -> TornTail { try TornTail(of: segment, from: end) }

  /// Verifies the available records and headers of frames, up to a record with separated values.
  /// - Returns: The number of bytes that the next record needs if it was incomplete; otherwise 0.
  private mutating func check(_ bytes: UnsafeRawBufferPointer) -> Int {
    let start = end
    while true {
      let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[(end - start)...])
      let isFrame = end == frameEnd
      let remaining = segment.byteCount - end
      let result =
        isFrame
        ? unsafe LogFrame.check(rest, at: end, remaining: remaining, salt: segment.header.salt)
        : unsafe LogRecord.check(
          rest, remaining: remaining, frameRemaining: frameEnd - end, after: lastRevision)
      switch result {
      case .intact(let recordByteCount) where isFrame:
        unsafe synced = max(synced, LogFrame.syncedByteCount(rest))
        end += LogFrame.byteCount
        frameEnd = end + recordByteCount
      case .intact(let count):
        lastRevision = unsafe rest.integer(at: 8, as: UInt64.self)
        end += count
      case .sparse:
        return 0
      case .incomplete(let needed):
        // The record may have separated values further on, so don't read all of it at once.
        return min(needed, max(Self.chunkByteCount, 4 * rest.count))
      case .end:
        // The rest may be a trailer.
        let needed = min(SegmentTrailer.byteCount, segment.byteCount - end)
        if rest.count < needed { return needed }
        let trailer = unsafe SegmentTrailer.decode(rest, at: end, secret: segment.header.secret)
        state = trailer.map { .sealed($0) } ?? .open
        if let trailer, trailer.lastRevision > CommitBuffer.revisions.upperBound {
          state = .damaged("the trailer's revision is impossible")
        }
        return 0
      case .damaged(let reason):
        state = .damaged(reason)
        return 0
      case .invalid(let reason, let byteCount):
        state = .damaged(reason)
        damageEnd = end + byteCount
        return 0
      }
    }
  }

  /// Returns the bytes of the last read from that offset of the file on.
  private func bytes(from offset: Int) -> UnsafeRawBufferPointer {
    guard offset >= bufferStart, offset < bufferStart + bufferCount else {
      return unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    }
    return unsafe UnsafeRawBufferPointer(rebasing: buffer[(offset - bufferStart)..<bufferCount])
  }

  /// Reads from that offset of the file on.
  /// - Returns: Whether it read that many bytes.
  private mutating func read(at offset: Int, _ count: Int) throws(LogError) -> Bool {
    if unsafe count > buffer.count {
      unsafe buffer.deallocate()
      unsafe buffer = .allocate(byteCount: count, alignment: 16)
    }
    bufferStart = offset
    bufferCount = 0
    let destination = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    do throws(SystemError) {
      bufferCount = unsafe try segment.file.read(at: offset, into: destination)
    } catch {
      throw .failed(path: segment.path, error)
    }
    return bufferCount == count
  }

  // MARK: Records with separated values

  /// Why a record with separated values can't be read.
  private enum SparseReadError: Error {
    case damaged(String)
    case failed(LogError)
  }

  private var sparseRecord: UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(rebasing: sparse[..<sparseCount])
  }

  /// Reads the record at `end` into `sparse`, and moves past it.
  private mutating func readSparse() throws(SparseReadError) {
    let start = end
    sparseCount = 0
    let bodyStart = CommitBuffer.recordHeaderByteCount
    try appendToSparse(start, bodyStart + 8)
    let (length, checksum, revision) = unsafe (
      Int(sparseRecord.integer(at: 0, as: UInt32.self)), sparseRecord.integer(at: 4, as: UInt32.self),
      sparseRecord.integer(at: 8, as: UInt64.self)
    )
    let recordEnd = start + bodyStart + length
    var offset = start + bodyStart + 8
    var damage: String?
    while offset < recordEnd {
      let operation = try readSparseOperation(at: offset, recordEnd: recordEnd)
      damage = damage ?? operation.damage
      offset = operation.end
    }
    let crc = unsafe sparseRecord.checksum(excluding: CommitBuffer.checksumRange)
    guard crc == checksum else { throw .damaged("a record's checksum is wrong") }
    if revision <= lastRevision || revision > CommitBuffer.revisions.upperBound {
      damage = "revisions are out of order"
    }
    if let damage {
      damageEnd = recordEnd
      throw .damaged(damage)
    }
    lastRevision = revision
    end = recordEnd
    if !verifiesValues { readByteCount = Self.skippingReadByteCount }
  }

  /// Appends an operation of the record to `sparse`.
  /// - Returns: The offset of the next operation in the file, and what is known to be wrong with its contents.
  private mutating func readSparseOperation(
    at start: Int, recordEnd: Int
  ) throws(SparseReadError) -> (end: Int, damage: String?) {
    let malformed = SparseReadError.damaged("a record's checksum is wrong, or it is malformed")
    let header = sparseCount
    guard recordEnd - start >= CommitBuffer.operationHeaderByteCount else { throw malformed }
    try appendToSparse(start, CommitBuffer.operationHeaderByteCount)
    let flags = unsafe sparse[header + 1]
    let keyCount = unsafe Int(sparseRecord.integer(at: header + 2, as: UInt16.self))
    let valueCount = unsafe Int(sparseRecord.integer(at: header + 4, as: UInt32.self))
    let isSeparated = flags & CommitBuffer.Flag.separated != 0
    let rest = (flags & CommitBuffer.Flag.expires != 0 ? 8 : 0) + (isSeparated ? 4 : valueCount) + keyCount
    let restStart = start + CommitBuffer.operationHeaderByteCount
    // Check this before reading the rest: only separated values may be large.
    guard isSeparated == (valueCount >= CommitBuffer.separatedByteCount),
      rest + (isSeparated ? valueCount : 0) <= recordEnd - restStart
    else { throw malformed }
    try appendToSparse(restStart, rest)
    guard let operation = unsafe RecordOperation(in: sparseRecord, at: header, isSparse: true),
      operation.end == sparseCount
    else { throw malformed }
    let end = restStart + rest + (isSeparated ? valueCount : 0)
    guard operation.hasValidContents else { return (end, operation.invalidContents) }
    guard isSeparated, verifiesValues else { return (end, nil) }
    let isIntact = try checksum(restStart + rest, valueCount) == operation.valueChecksum
    return (end, isIntact ? nil : "a value's checksum is wrong")
  }

  /// Appends bytes of the file to `sparse`.
  private mutating func appendToSparse(_ offset: Int, _ count: Int) throws(SparseReadError) {
    guard count > 0 else { return }
    if unsafe sparseCount + count > sparse.count {
      let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * (sparseCount + count), alignment: 16)
      unsafe larger.copyMemory(from: sparseRecord)
      unsafe sparse.deallocate()
      unsafe sparse = larger
    }
    let bytes = unsafe try self.bytes(offset, count)
    unsafe (sparse.baseAddress! + sparseCount).copyMemory(from: bytes.baseAddress!, byteCount: count)
    sparseCount += count
  }

  /// Returns bytes of the file, which exist unless the file has become shorter.
  private mutating func bytes(_ offset: Int, _ count: Int) throws(SparseReadError) -> UnsafeRawBufferPointer {
    if unsafe bytes(from: offset).count < count {
      do throws(LogError) { _ = try read(at: offset, max(count, readByteCount)) } catch { throw .failed(error) }
    }
    let bytes = unsafe bytes(from: offset)
    guard bytes.count >= count else { throw .damaged("a record is truncated") }
    return unsafe UnsafeRawBufferPointer(rebasing: bytes[..<count])
  }

  private mutating func checksum(_ start: Int, _ byteCount: Int) throws(SparseReadError) -> UInt32 {
    var (offset, crc) = (start, UInt32(0))
    while offset < start + byteCount {
      let available = unsafe bytes(from: offset).count
      let count = min(available > 0 ? available : Self.chunkByteCount, start + byteCount - offset)
      let piece = unsafe try bytes(offset, count)
      crc = unsafe piece.checksum(after: crc)
      offset += count
    }
    return crc
  }
}
