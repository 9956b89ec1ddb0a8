import Glibc

/// A queue of bytes that are appended at one end and consumed at the other, in memory that is reused.
///
/// The buffer doubles its memory when it is full, and keeps it until `releaseStorage`. All integers are little-endian.
@safe
public struct ByteBuffer: ~Copyable {
  @usableFromInline var base: UnsafeMutableRawPointer?
  public internal(set) var capacity = 0
  /// The offset of the first byte that is not consumed.
  @usableFromInline var start = 0
  @usableFromInline var end = 0

  public init() { unsafe base = nil }

  deinit { unsafe free(base) }

  @inlinable @inline(__always) public var count: Int { end &- start }
  @inlinable @inline(__always) public var isEmpty: Bool { end == start }

  /// The bytes in the buffer. The pointer is valid until the buffer changes.
  @inlinable public var bytes: UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(start: base.map { unsafe UnsafeRawPointer($0 + start) }, count: count)
  }

  @inlinable public func withSpan<R: ~Copyable, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try unsafe body(RawSpan(_unsafeBytes: bytes))
  }

  public func toArray() -> [UInt8] { unsafe Array(bytes) }

  // MARK: Appending

  /// Reserves memory for `byteCount` more bytes.
  @inlinable @inline(__always) public mutating func reserve(_ byteCount: Int) {
    if end &+ byteCount > capacity { grow(byteCount) }
  }

  @usableFromInline mutating func grow(_ byteCount: Int) {
    guard tryReserve(byteCount) else { fatalError("out of memory") }
  }

  /// Returns the capacity that the buffer has once it has memory for `byteCount` more bytes.
  public func capacity(reserving byteCount: Int) -> Int {
    if end + byteCount <= capacity || canMakeRoom(byteCount) { return capacity }
    return max(256, max(count + byteCount, 2 * capacity))
  }

  /// Whether the consumed bytes in front make enough room, and moving the others costs no more than consuming those did.
  private func canMakeRoom(_ byteCount: Int) -> Bool { count + byteCount <= capacity && start >= count }

  /// Reserves memory for `byteCount` more bytes.
  /// - Returns: False if the system has no memory.
  public mutating func tryReserve(_ byteCount: Int) -> Bool {
    if end + byteCount <= capacity { return true }
    let count = count
    if canMakeRoom(byteCount) {
      unsafe base!.copyMemory(from: base! + start, byteCount: count)
    } else {
      let newCapacity = capacity(reserving: byteCount)
      guard let newBase = unsafe malloc(newCapacity) else { return false }
      if count > 0 { unsafe newBase.copyMemory(from: base! + start, byteCount: count) }
      unsafe free(base)
      unsafe base = newBase
      capacity = newCapacity
    }
    start = 0
    end = count
    return true
  }

  @inlinable @inline(__always) public mutating func append<T: FixedWidthInteger & BitwiseCopyable>(_ value: T) {
    reserve(MemoryLayout<T>.size)
    unsafe base!.storeBytes(of: value.littleEndian, toByteOffset: end, as: T.self)
    end &+= MemoryLayout<T>.size
  }

  @inlinable @inline(__always) public mutating func append(_ source: UnsafeRawBufferPointer) {
    guard let address = source.baseAddress, source.count > 0 else { return }
    reserve(source.count)
    unsafe (base! + end).copyMemory(from: address, byteCount: source.count)
    end &+= source.count
  }

  @inlinable @inline(__always) public mutating func append(_ span: RawSpan) {
    unsafe span.withUnsafeBytes { unsafe append($0) }
  }

  public mutating func append(_ array: [UInt8]) {
    unsafe array.withUnsafeBytes { unsafe append($0) }
  }

  public mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { unsafe append(UnsafeRawBufferPointer($0)) }
  }

  /// Overwrites bytes in the buffer with an integer.
  /// - Parameter offset: The offset from the first byte that is not consumed.
  @inlinable @inline(__always) public mutating func replace<T: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int, with value: T
  ) {
    precondition(offset >= 0 && offset + MemoryLayout<T>.size <= count)
    unsafe base!.storeBytes(of: value.littleEndian, toByteOffset: start + offset, as: T.self)
  }

  /// Appends up to `byteCount` bytes that `fill` writes. It returns how many it wrote, and a result.
  @inlinable public mutating func fill<R>(
    _ byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> (written: Int, result: R)
  ) -> R {
    reserve(byteCount)
    let outcome = unsafe fill(UnsafeMutableRawBufferPointer(start: base! + end, count: byteCount))
    precondition(outcome.written >= 0 && outcome.written <= byteCount)
    end &+= outcome.written
    return outcome.result
  }

  /// Appends uninitialized bytes, for `overwrite`.
  /// - Returns: The offset of those bytes from the first byte that is not consumed.
  public mutating func extend(by byteCount: Int) -> Int {
    precondition(byteCount >= 0)
    reserve(byteCount)
    end += byteCount
    return count - byteCount
  }

  /// Passes bytes in the buffer to `body`, which overwrites them.
  /// - Parameter offset: The offset from the first byte that is not consumed.
  public mutating func overwrite<R, E: Error>(
    at offset: Int, byteCount: Int, _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    precondition(offset >= 0 && byteCount > 0 && byteCount <= count - offset)
    return unsafe try body(UnsafeMutableRawBufferPointer(start: base! + start + offset, count: byteCount))
  }

  // MARK: Consuming

  /// Removes the first `byteCount` bytes.
  @inlinable public mutating func consume(_ byteCount: Int) {
    precondition(byteCount >= 0 && byteCount <= count)
    start &+= byteCount
    if start == end { removeAll() }
  }

  /// Removes all bytes but the first `byteCount`.
  @inlinable public mutating func truncate(to byteCount: Int) {
    precondition(byteCount >= 0 && byteCount <= count)
    end = start &+ byteCount
  }

  /// Removes all bytes and keeps the memory.
  @inlinable public mutating func removeAll() {
    start = 0
    end = 0
  }

  /// Removes all bytes and frees the memory.
  public mutating func releaseStorage() {
    unsafe free(base)
    unsafe base = nil
    capacity = 0
    removeAll()
  }
}

// Safe because a buffer is the only owner of its memory, and no pointer to the memory outlives a borrow of the buffer.
extension ByteBuffer: @unchecked Sendable {}
