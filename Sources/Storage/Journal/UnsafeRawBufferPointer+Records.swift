extension UnsafeRawBufferPointer {
  /// How many bytes the record has that begins at that place, by what it says itself.
  @inline(__always)
  func recordByteCount(at place: Int) -> Int {
    unsafe CommitBuffer.recordHeaderByteCount &+ Int(integer(at: place, as: UInt32.self))
  }
}
