import Platform

/// An empty file whose space is allocated: the next segment.
struct PreparedSegment {
  let file: any File
  let capacity: Int

  /// Creates the file, or allocates more space for an existing one, which stays as it is if that fails.
  init(capacity: Int, enlarging smaller: PreparedSegment?, in folder: LogFolder) throws(SystemError) {
    if let smaller { file = smaller.file } else { file = try folder.create(folder.nextPath) }
    self.capacity = capacity
    do throws(SystemError) { try file.allocate(capacity) } catch {
      // Free what was allocated so far. A failure to do so costs only the space.
      if let smaller { try? file.truncate(to: smaller.capacity) } else { try? folder.remove(folder.nextPath) }
      throw error
    }
    try file.sync()
  }

  var space: SegmentSpace { SegmentSpace(byteCount: capacity - SegmentHeader.byteCount) }
}
