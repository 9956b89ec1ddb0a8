import Platform

/// What a crash has left after the last intact record of a segment, as opposed to damage to what was on disk.
///
/// Any parts of what wasn't synced may have reached the disk, so intact records after a broken place prove nothing. A
/// sync mark or a trailer does: everything that it covers was on disk when it was written.
struct TornTail {
  private static let pieceByteCount = 1 << 20

  /// The number of bytes after the last intact record, up to the last nonzero one.
  private(set) var byteCount = 0
  /// Whether the broken place was once on disk.
  private(set) var wasSynced = false

  init(of file: any File, from start: Int, fileByteCount: Int, identity: UInt64) throws(SystemError) {
    // Pieces overlap, so that one of them contains all of a mark or trailer.
    let overlap = max(SyncMark.byteCount, SegmentTrailer.byteCount)
    var offset = start
    while offset < fileByteCount {
      let bytes = try file.bytes(at: offset, count: min(Self.pieceByteCount, fileByteCount - offset))
      guard !bytes.isEmpty else { break }
      unsafe bytes.withBytes { unsafe scan($0, offset: offset, start: start, identity: identity) }
      offset += bytes.count <= overlap || offset + bytes.count == fileByteCount ? bytes.count : bytes.count - overlap
    }
  }

  private mutating func scan(_ bytes: UnsafeRawBufferPointer, offset: Int, start: Int, identity: UInt64) {
    var end = bytes.count
    while end >= 8, unsafe bytes.loadUnaligned(fromByteOffset: end - 8, as: UInt64.self) == 0 { end -= 8 }
    while end > 0, unsafe bytes[end - 1] == 0 { end -= 1 }
    if end > 0 { byteCount = max(byteCount, offset + end - start) }
    // Marks and trailers contain the store's identity in their last 16 bytes.
    let firstByte = UInt8(truncatingIfNeeded: identity)
    for index in 0..<max(0, end) where unsafe bytes[index] == firstByte && index + 8 <= bytes.count {
      guard unsafe bytes.integer(at: index, as: UInt64.self) == identity else { continue }
      if index >= SyncMark.identityOffset {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[(index - SyncMark.identityOffset)...])
        if let mark = unsafe SyncMark.decode(rest, identity: identity), mark.covers(start) {
          wasSynced = true
        }
      }
      if index >= SegmentTrailer.identityOffset {
        let trailerOffset = offset + index - SegmentTrailer.identityOffset
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[(index - SegmentTrailer.identityOffset)...])
        if unsafe SegmentTrailer.decode(rest, at: trailerOffset, identity: identity) != nil, trailerOffset > start {
          wasSynced = true
        }
      }
    }
  }
}
