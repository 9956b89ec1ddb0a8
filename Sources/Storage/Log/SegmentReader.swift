import Platform

/// Reads the records of a segment in pieces, and checks them.
///
/// A piece is whole records, checked all through, in a buffer that the next one overwrites. Owned by whoever reads.
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

  private let file: any File
  private let path: String
  let identity: UInt64
  /// The size of the file.
  let byteCount: Int
  private(set) var state = State.more
  /// Where the piece begins in the file.
  private(set) var offset = SegmentHeader.byteCount
  /// The end of the piece: of what is known to be good.
  private(set) var end = SegmentHeader.byteCount
  /// The revision of the last record.
  private(set) var lastRevision: UInt64
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: SegmentReader.pieceByteCount, alignment: 16)

  init(_ segment: FoundSegment) {
    byteCount = segment.byteCount
    file = segment.file
    path = segment.path
    identity = segment.header.identity
    lastRevision = max(1, segment.header.firstRevision) - 1
  }

  deinit { unsafe buffer.deallocate() }

  /// Goes on behind a damaged place.
  mutating func resume(at place: Int) {
    end = place
    state = .more
  }

  /// The records of the next piece, end to end; none when there is no other, which `state` then says why.
  @unsafe
  mutating func next() throws(LogError) -> UnsafeRawBufferPointer {
    offset = end
    guard state == .more else { return unsafe UnsafeRawBufferPointer(start: nil, count: 0) }
    var wanted = Self.pieceByteCount
    while true {
      if unsafe wanted > buffer.count {
        unsafe buffer.deallocate()
        unsafe buffer = .allocate(byteCount: wanted, alignment: 16)
      }
      let room = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
      let count: Int
      do throws(SystemError) {
        count = unsafe try file.read(at: offset, into: room)
      } catch {
        throw .failed(path: path, error)
      }
      let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
      wanted = unsafe check(bytes)
      if wanted > 0, end == offset, count < room.count {
        // The file became shorter while it was read.
        state = .damaged("a record is cut short")
        wanted = 0
      }
      if end > offset || wanted == 0 { return unsafe UnsafeRawBufferPointer(rebasing: bytes[..<(end - offset)]) }
    }
  }

  /// Walks over what was read.
  /// - Returns: how many bytes the next record needs, if it wasn't all there; else 0.
  private mutating func check(_ bytes: UnsafeRawBufferPointer) -> Int {
    while true {
      let place = end - offset
      let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[place...])
      switch unsafe LogRecord.check(rest, remaining: byteCount - end, after: lastRevision) {
      case .whole(let count):
        lastRevision = unsafe rest.integer(at: 8, as: UInt64.self)
        end += count
      case .incomplete(let needed):
        return needed
      case .end:
        // What is left may be a trailer.
        if rest.count < min(SegmentTrailer.byteCount, byteCount - end) { return SegmentTrailer.byteCount }
        let trailer = unsafe SegmentTrailer.decode(rest, at: end, identity: identity)
        state = trailer.map { .sealed($0) } ?? .open
        return 0
      case .damaged(let what):
        state = .damaged(what)
        return 0
      }
    }
  }
}
