import Platform

/// Reads the records of a segment in pieces, and checks them.
///
/// A piece is whole records, checked all through; or one that has values apart, which is read without them, however large they are. They
/// have checksums of their own, which are checked only if asked for. Owned by whoever reads.
@safe
struct SegmentReader: ~Copyable {
  /// What there is behind the last piece.
  enum State: Equatable {
    /// Another piece.
    case more
    case sealed(SegmentTrailer)
    /// A length of zero and no trailer: nothing was written from here on, or it is torn.
    case open
    case damaged(String)
  }

  /// How much is read at a time: what stays in the processor's cache while it is checked and used.
  static let pieceByteCount = 256 << 10
  /// How much is read behind a value that was passed over, and may be followed by another.
  static let probeByteCount = 4 << 10

  private let file: any File
  private let path: String
  let identity: UInt64
  /// The size of the file.
  let byteCount: Int
  /// Whether values apart are read too, and their checksums checked.
  let verifiesValues: Bool
  var state = State.more
  /// The end of the last piece: of what is known to be good.
  var end = SegmentHeader.byteCount
  /// Where the damaged record ends, if nothing of it is damaged but values apart; nil when nobody knows.
  var damageEnd: Int?
  /// The revision of the last record.
  var lastRevision: UInt64
  /// How much the next read takes: less where values are passed over.
  var readByteCount: Int
  /// What was read last: so many bytes, from that place on.
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: SegmentReader.pieceByteCount, alignment: 16)
  private var bufferStart = 0
  private var bufferCount = 0
  /// The last record that had values apart.
  var sparse = UnsafeMutableRawBufferPointer.allocate(byteCount: SegmentReader.probeByteCount, alignment: 16)
  var sparseCount = 0

  init(_ segment: FoundSegment, verifiesValues: Bool) {
    byteCount = segment.byteCount
    file = segment.file
    path = segment.path
    identity = segment.header.identity
    lastRevision = max(1, segment.header.firstRevision) - 1
    self.verifiesValues = verifiesValues
    readByteCount = verifiesValues ? Self.pieceByteCount : Self.pieceByteCount / 4
  }

  deinit {
    unsafe buffer.deallocate()
    unsafe sparse.deallocate()
  }

  /// Goes on behind a damaged place.
  mutating func resume(at place: Int) {
    end = place
    damageEnd = nil
    state = .more
  }

  /// The next piece; an empty one when there is no other, which `state` then says why.
  mutating func next() throws(LogError) -> SegmentPiece {
    let offset = end
    var wanted = 0
    while state == .more {
      // What the last read brought may have more records.
      if unsafe wanted > 0 || bytes(from: offset).count < 8 {
        let isWhole = try read(at: offset, max(wanted, readByteCount))
        if !isWhole, wanted > bufferCount {
          // The file became shorter while it was read.
          state = .damaged("a record is cut short")
          break
        }
      }
      let bytes = unsafe bytes(from: offset)
      wanted = unsafe check(bytes)
      if end > offset {
        readByteCount = min(Self.pieceByteCount, 4 * readByteCount)
        return unsafe SegmentPiece(
          bytes: UnsafeRawBufferPointer(rebasing: bytes[..<(end - offset)]), offset: offset, isSparse: false)
      }
      if wanted == 0, state == .more {
        do throws(SparseError) {
          try readSparse()
        } catch {
          if case .failed(let error) = error { throw error }
          if case .damaged(let what) = error { state = .damaged(what) }
          break
        }
        return unsafe SegmentPiece(
          bytes: UnsafeRawBufferPointer(rebasing: sparse[..<sparseCount]), offset: offset, isSparse: true)
      }
    }
    return unsafe SegmentPiece(bytes: UnsafeRawBufferPointer(start: nil, count: 0), offset: offset, isSparse: false)
  }

  /// Walks over what was read, up to a record that has values apart.
  /// - Returns: how many bytes the next record needs, if it wasn't all there; else 0.
  private mutating func check(_ bytes: UnsafeRawBufferPointer) -> Int {
    let start = end
    while true {
      let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[(end - start)...])
      switch unsafe LogRecord.check(rest, remaining: byteCount - end, after: lastRevision) {
      case .whole(let count):
        lastRevision = unsafe rest.integer(at: 8, as: UInt64.self)
        end += count
      case .sparse:
        return 0
      case .incomplete(let needed):
        // It may have values apart further on, so it is not read all at once.
        return min(needed, max(Self.pieceByteCount, 4 * rest.count))
      case .end:
        // What is left may be a trailer.
        let needed = min(SegmentTrailer.byteCount, byteCount - end)
        if rest.count < needed { return needed }
        let trailer = unsafe SegmentTrailer.decode(rest, at: end, identity: identity)
        state = trailer.map { .sealed($0) } ?? .open
        if let trailer, trailer.lastRevision > CommitBuffer.revisions.upperBound {
          state = .damaged("the trailer's revision is impossible")
        }
        return 0
      case .damaged(let what):
        state = .damaged(what)
        return 0
      }
    }
  }

  /// What was read and lies from that place on.
  func bytes(from place: Int) -> UnsafeRawBufferPointer {
    guard place >= bufferStart, place < bufferStart + bufferCount else {
      return unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    }
    return unsafe UnsafeRawBufferPointer(rebasing: buffer[(place - bufferStart)..<bufferCount])
  }

  /// Reads from that place on.
  /// - Returns: whether so many bytes came.
  mutating func read(at place: Int, _ count: Int) throws(LogError) -> Bool {
    if unsafe count > buffer.count {
      unsafe buffer.deallocate()
      unsafe buffer = .allocate(byteCount: count, alignment: 16)
    }
    bufferStart = place
    bufferCount = 0
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    do throws(SystemError) {
      bufferCount = unsafe try file.read(at: place, into: room)
    } catch {
      throw .failed(path: path, error)
    }
    return bufferCount == count
  }
}
