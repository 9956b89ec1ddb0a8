import Platform

/// A part of a segment that contains the segment's secret, so that only the segment's writer can have made it.
enum SegmentBoundary {
  /// A frame; in version 1, a sync mark. Records follow it.
  case records(offset: Int, syncedByteCount: Int)
  case trailer(offset: Int)

  private static let pieceByteCount = 1 << 20

  var offset: Int {
    switch self {
    case .records(let offset, _), .trailer(let offset): offset
    }
  }

  /// The end of the part of the segment that was on disk when this was written.
  private var syncedByteCount: Int {
    switch self {
    case .records(_, let synced): synced
    case .trailer(let offset): offset
    }
  }

  /// Returns whether this proves that the byte at that offset was on disk.
  func covers(_ offset: Int) -> Bool { syncedByteCount > offset }

  /// Searches a segment from an offset on.
  /// - Parameters:
  ///   - onBytes: Called with each piece of the file and its offset before it is searched. Pieces overlap.
  ///   - body: Called with each boundary, in order. Returns whether to continue the search.
  static func search(
    _ segment: SegmentFile, from start: Int, onBytes: (UnsafeRawBufferPointer, Int) -> Void = { _, _ in },
    _ body: (SegmentBoundary) -> Bool
  ) throws(LogError) {
    // So that one of the pieces contains all of a mark, frame or trailer.
    let overlap = max(SyncMark.byteCount, LogFrame.byteCount, SegmentTrailer.byteCount)
    var (offset, searched, hasStopped) = (start, start, false)
    while offset < segment.byteCount, !hasStopped {
      let bytes = try LogError.wrapping(segment.path) { () throws(SystemError) in
        try segment.file.bytes(at: offset, count: min(pieceByteCount, segment.byteCount - offset))
      }
      guard !bytes.isEmpty else { return }
      unsafe bytes.withBytes { bytes in
        unsafe onBytes(bytes, offset)
        for boundary in unsafe boundaries(in: bytes, at: offset, of: segment.header)
        where boundary.offset >= searched && !hasStopped {
          searched = boundary.offset + 1
          hasStopped = !body(boundary)
        }
      }
      let isLast = bytes.count <= overlap || offset + bytes.count == segment.byteCount
      offset += isLast ? bytes.count : bytes.count - overlap
    }
  }

  /// Returns the boundaries that are wholly in a piece of a segment.
  private static func boundaries(
    in bytes: UnsafeRawBufferPointer, at offset: Int, of header: SegmentHeader
  ) -> [SegmentBoundary] {
    var boundaries: [SegmentBoundary] = []
    var index = 0
    while index + 8 <= bytes.count {
      let word = unsafe bytes.integer(at: index, as: UInt64.self)
      if word == header.secret, let boundary = unsafe boundary(in: bytes, secretAt: index, at: offset, of: header) {
        boundaries.append(boundary)
      }
      // The secret's lowest byte isn't zero.
      index += word == 0 ? 8 : 1
    }
    return boundaries
  }

  private static func boundary(
    in bytes: UnsafeRawBufferPointer, secretAt index: Int, at offset: Int, of header: SegmentHeader
  ) -> SegmentBoundary? {
    func rest(_ place: Int) -> UnsafeRawBufferPointer? {
      index < place ? nil : unsafe UnsafeRawBufferPointer(rebasing: bytes[(index - place)...])
    }
    if let rest = unsafe rest(SegmentTrailer.secretOffset) {
      let place = offset + index - SegmentTrailer.secretOffset
      if unsafe SegmentTrailer.decode(rest, at: place, secret: header.secret) != nil { return .trailer(offset: place) }
    }
    if let salt = header.salt {
      let place = offset + index - LogFrame.saltOffset
      guard let rest = unsafe rest(LogFrame.saltOffset), let frame = unsafe LogFrame.decode(rest, at: place, salt: salt)
      else { return nil }
      return .records(offset: place, syncedByteCount: frame.syncedByteCount)
    }
    guard let rest = unsafe rest(SyncMark.identityOffset),
      let mark = unsafe SyncMark.decode(rest, identity: header.identity)
    else { return nil }
    return .records(offset: offset + index - SyncMark.identityOffset, syncedByteCount: mark.syncedByteCount)
  }
}

/// What a crash has left after the last intact record of a segment, as opposed to damage to what was on disk.
///
/// Any parts of what wasn't synced may have reached the disk, so intact records after a broken place prove nothing. A
/// boundary does: everything that it covers was on disk when it was written.
struct TornTail {
  /// The number of bytes after the last intact record, up to the last nonzero one.
  private(set) var byteCount = 0
  /// Whether the broken place was once on disk.
  private(set) var wasSynced = false

  init(of segment: SegmentFile, from start: Int) throws(LogError) {
    var (byteCount, wasSynced) = (0, false)
    unsafe try SegmentBoundary.search(
      segment, from: start,
      onBytes: { bytes, offset in
        var end = bytes.count
        while end >= 8, unsafe bytes.loadUnaligned(fromByteOffset: end - 8, as: UInt64.self) == 0 { end -= 8 }
        while end > 0, unsafe bytes[end - 1] == 0 { end -= 1 }
        if end > 0 { byteCount = max(byteCount, offset + end - start) }
      },
      { boundary in
        if boundary.covers(start) { wasSynced = true }
        return true
      })
    (self.byteCount, self.wasSynced) = (byteCount, wasSynced)
  }
}
