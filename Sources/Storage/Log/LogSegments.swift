import Platform

/// A segment that no commit is written to any more.
struct SealedSegment: Sendable {
  var number: UInt64
  var lastNumber: UInt64
  var firstRevision: UInt64
  var lastRevision: UInt64
  var sweptRevision: UInt64
  /// Header, records and trailer.
  var byteCount: Int
  /// What its tombstones take: nil until somebody has read them.
  var tombstoneBytes: Int?
  /// What its live records take, as the last survey or the rewriting found.
  var liveBytes: Int
  /// Whether a value in it can't be read, so that it can't be rewritten.
  var hasDamagedValue = false
}

/// The segment that commits are written to.
struct ActiveSegment {
  let values: ValueFile
  let number: UInt64
  let firstRevision: UInt64
  /// How far its place on the disk is taken.
  let capacity: Int
  /// Where the next record goes.
  var end = SegmentHeader.byteCount
  /// Everything before this place is on the disk.
  var synced = SegmentHeader.byteCount
  /// What the last mark says.
  var marked = SegmentHeader.byteCount

  var file: any File { values.file }

  /// What records may take: a mark and the trailer must find their place, too.
  var room: Int { max(0, capacity - end - SyncMark.byteCount - SegmentTrailer.byteCount) }
}

/// A file whose place on the disk is taken, and that has nothing in it yet.
struct PreparedSegment {
  let file: any File
  var capacity: Int

  var room: Int {
    max(0, capacity - SegmentHeader.byteCount - SyncMark.byteCount - SegmentTrailer.byteCount)
  }
}
