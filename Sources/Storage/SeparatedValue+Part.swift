import Platform

/// Which bytes of a separated value to read.
struct ValuePart: Sendable {
  let start: Int
  /// The size of the whole value.
  let valueByteCount: Int
}

/// The checksums of the slices of a separated value that was once read as a whole and found to be what was written.
///
/// A file has one checksum for each value. With these, a part of the value can be checked without reading the rest of it
/// again.
struct VerifiedSlices: Sendable {
  static let sliceByteCount = 64 << 10

  /// The offset of the value in its file.
  let offset: Int
  /// The CRC32C of each slice.
  let checksums: [UInt32]
}

extension SeparatedValue {
  /// The size of a value that may be verified where nothing should take long, in bytes.
  static let maxQuicklyVerifiedByteCount = 1 << 20

  /// Returns a reference to a part of the value. Reading it returns nothing that the value's checksum does not cover:
  /// the first read of any part reads and verifies the whole value, without keeping it in memory.
  package func part(_ range: Range<Int>) -> SeparatedValue {
    precondition(part == nil && range.lowerBound >= 0 && range.upperBound <= byteCount)
    return SeparatedValue(
      file: file, offset: offset, byteCount: range.count, checksum: checksum,
      part: ValuePart(start: range.lowerBound, valueByteCount: byteCount))
  }

  /// Reads a part of the value, slice by slice.
  /// - Parameter read: Reads bytes at an offset of the file into a buffer, and returns whether it could.
  /// - Returns: Whether everything was read.
  /// - Throws: If a slice can't be read, or the value is not what was written. The contents of the buffer are then
  ///   undefined.
  func read(
    _ part: ValuePart, into buffer: UnsafeMutableRawBufferPointer,
    with read: (Int, UnsafeMutableRawBufferPointer) throws(SeparatedValueError) -> Bool
  ) throws(SeparatedValueError) -> Bool {
    let size = VerifiedSlices.sliceByteCount
    let range = part.start..<part.start + buffer.count
    let known = file.verifiedSlices(ofValueAt: offset)
    let slices =
      known == nil
      ? 0..<(part.valueByteCount + size - 1) / size
      : range.lowerBound / size..<(range.upperBound + size - 1) / size
    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    defer { unsafe scratch.deallocate() }
    var checksums: [UInt32] = []
    var valueChecksum: UInt32 = 0
    for index in slices {
      let slice = index * size..<min((index + 1) * size, part.valueByteCount)
      let wanted = slice.clamped(to: range)
      let isWanted = wanted == slice
      let room =
        unsafe isWanted
        ? UnsafeMutableRawBufferPointer(
          rebasing: buffer[slice.lowerBound - range.lowerBound..<slice.upperBound - range.lowerBound])
        : UnsafeMutableRawBufferPointer(rebasing: scratch.prefix(slice.count))
      guard try unsafe read(offset + slice.lowerBound, room) else { return false }
      let bytes = UnsafeRawBufferPointer(room)
      if !isWanted, !wanted.isEmpty {
        unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[(wanted.lowerBound - range.lowerBound)...])
          .copyMemory(
            from: UnsafeRawBufferPointer(
              rebasing: bytes[wanted.lowerBound - slice.lowerBound..<wanted.upperBound - slice.lowerBound]))
      }
      let sliceChecksum = unsafe bytes.checksum()
      if let known {
        guard known.checksums[index] == sliceChecksum else { throw .damaged(path: file.path, offset: offset) }
      } else {
        checksums.append(sliceChecksum)
        valueChecksum = unsafe bytes.checksum(after: valueChecksum)
      }
    }
    if known == nil {
      guard valueChecksum == checksum else { throw .damaged(path: file.path, offset: offset) }
      file.add(VerifiedSlices(offset: offset, checksums: checksums))
    }
    return true
  }
}
