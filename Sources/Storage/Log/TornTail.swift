import Platform

/// Tells what a crash leaves behind the last whole record from damage to what was on the disk.
///
/// What wasn't synced may be there in any parts, so whole records behind a broken place prove nothing. A mark or a trailer does: all
/// that it speaks of was on the disk when it was written.
struct TornTail {
  /// How many bytes there are behind the last whole record, to the last that isn't zero.
  var byteCount = 0
  /// Whether the broken place was on the disk once.
  var wasSynced = false

  init(of file: any File, from start: Int, fileByteCount: Int, identity: UInt64) throws(SystemError) {
    let pieceByteCount = 1 << 20
    // Pieces overlap, so that a mark or trailer is whole in one of them.
    let overlap = max(SyncMark.byteCount, SegmentTrailer.byteCount)
    var place = start
    while place < fileByteCount {
      let bytes = try file.bytes(at: place, count: min(pieceByteCount, fileByteCount - place))
      guard !bytes.isEmpty else { break }
      unsafe bytes.withBytes { unsafe look(at: $0, place: place, start: start, identity: identity) }
      place += bytes.count <= overlap || place + bytes.count == fileByteCount ? bytes.count : bytes.count - overlap
    }
  }

  private mutating func look(at bytes: UnsafeRawBufferPointer, place: Int, start: Int, identity: UInt64) {
    var end = bytes.count
    while end >= 8, unsafe bytes.loadUnaligned(fromByteOffset: end - 8, as: UInt64.self) == 0 { end -= 8 }
    while end > 0, unsafe bytes[end - 1] == 0 { end -= 1 }
    if end > 0 { byteCount = max(byteCount, place + end - start) }
    // Either holds the store's identity in its last 16 bytes.
    let first = UInt8(truncatingIfNeeded: identity)
    for index in 0..<max(0, end) where unsafe bytes[index] == first && index + 8 <= bytes.count {
      guard unsafe bytes.integer(at: index, as: UInt64.self) == identity else { continue }
      if index >= SyncMark.identityOffset {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[(index - SyncMark.identityOffset)...])
        if let mark = unsafe SyncMark.decode(rest, identity: identity), mark.syncedByteCount > start {
          wasSynced = true
        }
      }
      if index >= 24 {
        let offset = place + index - 24
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[(index - 24)...])
        if unsafe SegmentTrailer.decode(rest, at: offset, identity: identity) != nil, offset > start {
          wasSynced = true
        }
      }
    }
  }
}
