import Glibc

/// Values too large for a record, each in a buffer of its own from `malloc`.
///
/// The buffers are linked through a small header, so that dropping a store frees them without reading a single record.
/// Owned by one `EntryMap` and used under its store's lock.
@safe
struct ExternalValues: ~Copyable {
  /// Values of this many bytes and more are kept here; a record's header has 15 bits for the length of a shorter one.
  static let minimumByteCount = 32_768

  @unsafe
  private struct Header {
    var previous: UnsafeMutablePointer<Header>?
    var next: UnsafeMutablePointer<Header>?
    var byteCount: Int
  }

  /// What the buffers take, headers included.
  private(set) var memoryBytes = 0
  private var newest: UnsafeMutablePointer<Header>?

  deinit {
    var buffer = unsafe newest
    while let header = unsafe buffer {
      unsafe buffer = header.pointee.next
      unsafe Glibc.free(header)
    }
  }

  /// A buffer that holds a copy of the value; the pointer is where the bytes begin.
  mutating func make(copying value: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeMutableRawPointer {
    let byteCount = unsafe MemoryLayout<Header>.size + value.count
    guard let memory = unsafe malloc(byteCount) else { throw .outOfMemory }
    let header = unsafe memory.bindMemory(to: Header.self, capacity: 1)
    unsafe header.initialize(to: Header(previous: nil, next: newest, byteCount: value.count))
    unsafe newest?.pointee.previous = header
    unsafe newest = header
    memoryBytes += byteCount
    let bytes = unsafe memory + MemoryLayout<Header>.size
    unsafe bytes.copyMemory(from: value.baseAddress!, byteCount: value.count)
    return unsafe bytes
  }

  mutating func free(_ bytes: UnsafeMutableRawPointer) {
    let header = unsafe Self.header(of: bytes)
    let (previous, next) = unsafe (header.pointee.previous, header.pointee.next)
    if let previous = unsafe previous { unsafe previous.pointee.next = next } else { unsafe newest = next }
    unsafe next?.pointee.previous = previous
    memoryBytes -= unsafe MemoryLayout<Header>.size + header.pointee.byteCount
    unsafe Glibc.free(header)
  }

  static func byteCount(of bytes: UnsafeRawPointer) -> Int {
    unsafe header(of: UnsafeMutableRawPointer(mutating: bytes)).pointee.byteCount
  }

  private static func header(of bytes: UnsafeMutableRawPointer) -> UnsafeMutablePointer<Header> {
    unsafe (bytes - MemoryLayout<Header>.size).assumingMemoryBound(to: Header.self)
  }
}
