import Glibc

/// Values too large for a record, each with a small header from `malloc`. The bytes follow the header, or are in a file
/// of the store.
///
/// The headers are linked, so that dropping a store frees them without reading any records. A record refers to its
/// value by the address of the header. One `EntryMap` owns the values and uses them under its store's lock.
@safe
struct ExternalValues: ~Copyable {
  /// The size of the smallest value that is kept here. A record's header has 15 bits for the size of a smaller one.
  static let minimumByteCount = 32_768

  @unsafe
  private struct Header {
    var previous: UnsafeMutablePointer<Header>?
    var next: UnsafeMutablePointer<Header>?
    var byteCount: Int
    /// The file with the value, retained; nil if the bytes follow the header.
    var file: Unmanaged<ValueFile>?
    var offset = 0
    var checksum: UInt32 = 0

    /// The memory of the header and the bytes.
    var memoryBytes: Int { unsafe MemoryLayout<Header>.size + (file == nil ? byteCount : 0) }
  }

  /// The memory of all headers and bytes.
  private(set) var memoryBytes = 0
  /// The number of values in files, and their total size.
  private(set) var storedCount = 0
  private(set) var storedBytes = 0
  private var newest: UnsafeMutablePointer<Header>?
  /// What the process may take from the system.
  private let budget: MemoryBudget?
  /// What has been taken from it for values of the current write.
  private var reservedBytes = 0

  init(_ budget: MemoryBudget? = nil) {
    unsafe newest = nil
    self.budget = budget
  }

  deinit {
    var header = unsafe newest
    while let current = unsafe header {
      unsafe header = current.pointee.next
      unsafe current.pointee.file?.release()
      unsafe Glibc.free(current)
    }
  }

  /// Takes memory for values of this size in all from the budget of the process, instead of what was reserved before.
  /// - Throws: `memoryLimit`, with nothing reserved.
  mutating func reserve(_ byteCount: Int) throws(StorageError) {
    guard let budget else { return }
    budget.count(-reservedBytes)
    reservedBytes = 0
    guard budget.take(byteCount) else { throw .memoryLimit }
    reservedBytes = byteCount
  }

  /// Adds a copy of a value.
  /// - Throws: `memoryLimit` or `outOfMemory`.
  mutating func make(copying value: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeMutableRawPointer {
    if reservedBytes >= value.count {
      reservedBytes -= value.count
    } else if let budget, !budget.take(value.count) {
      throw .memoryLimit
    }
    let header = unsafe try link(Header(byteCount: value.count))
    unsafe (UnsafeMutableRawPointer(header) + MemoryLayout<Header>.size)
      .copyMemory(from: value.baseAddress!, byteCount: value.count)
    return UnsafeMutableRawPointer(header)
  }

  /// Adds a value in a file.
  mutating func make(_ value: SeparatedValue) throws(StorageError) -> UnsafeMutableRawPointer {
    let header = unsafe try link(
      Header(
        byteCount: value.byteCount, file: Unmanaged.passUnretained(value.file), offset: value.offset,
        checksum: value.checksum))
    unsafe _ = header.pointee.file?.retain()
    storedCount += 1
    storedBytes += value.byteCount
    return UnsafeMutableRawPointer(header)
  }

  mutating func free(_ value: UnsafeMutableRawPointer) {
    let header = unsafe Self.header(of: value)
    let (previous, next) = unsafe (header.pointee.previous, header.pointee.next)
    if let previous = unsafe previous { unsafe previous.pointee.next = next } else { unsafe newest = next }
    unsafe next?.pointee.previous = previous
    memoryBytes -= unsafe header.pointee.memoryBytes
    if let file = unsafe header.pointee.file {
      storedCount -= 1
      storedBytes -= unsafe header.pointee.byteCount
      unsafe file.release()
    } else {
      budget?.count(unsafe -header.pointee.byteCount)
    }
    unsafe Glibc.free(header)
  }

  private mutating func link(_ header: Header) throws(StorageError) -> UnsafeMutablePointer<Header> {
    let byteCount = unsafe header.memoryBytes
    guard let memory = unsafe malloc(byteCount) else { throw .outOfMemory }
    let new = unsafe memory.bindMemory(to: Header.self, capacity: 1)
    unsafe new.initialize(to: header)
    unsafe new.pointee.next = newest
    unsafe newest?.pointee.previous = new
    unsafe newest = new
    memoryBytes += byteCount
    return unsafe new
  }

  static func byteCount(of value: UnsafeMutableRawPointer) -> Int {
    unsafe header(of: value).pointee.byteCount
  }

  /// Returns the memory of the value.
  static func memoryBytes(of value: UnsafeMutableRawPointer) -> Int {
    unsafe header(of: value).pointee.memoryBytes
  }

  /// The memory overhead of a value.
  static let headerByteCount = unsafe MemoryLayout<Header>.size

  /// Returns the value's bytes; nil if they are in a file.
  static func bytes(of value: UnsafeMutableRawPointer) -> UnsafeRawBufferPointer? {
    let header = unsafe header(of: value)
    guard unsafe header.pointee.file == nil else { return nil }
    return unsafe UnsafeRawBufferPointer(start: value + MemoryLayout<Header>.size, count: header.pointee.byteCount)
  }

  /// Returns a reference to a value in a file; nil if its bytes are in memory.
  static func stored(_ value: UnsafeMutableRawPointer) -> SeparatedValue? {
    let header = unsafe header(of: value)
    guard let file = unsafe header.pointee.file else { return nil }
    return unsafe SeparatedValue(
      file: file.takeUnretainedValue(), offset: header.pointee.offset, byteCount: header.pointee.byteCount,
      checksum: header.pointee.checksum)
  }

  private static func header(of value: UnsafeMutableRawPointer) -> UnsafeMutablePointer<Header> {
    unsafe value.assumingMemoryBound(to: Header.self)
  }
}
