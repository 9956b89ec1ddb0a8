import Glibc

/// Values too large for a record, each with a small header from `malloc`. The bytes are in memory of their own, or in a
/// file of the store.
///
/// The headers are linked, so that dropping a store frees them without reading any records. A record refers to its
/// value by the address of the header. One `EntryMap` owns the values and uses them under its store's lock.
@safe
struct ExternalValues: ~Copyable {
  /// The size of the smallest value that is kept here. A record's header has 15 bits for the size of a smaller one.
  static let minimumByteCount = 32_768
  /// The maximum number of bytes beside a value in memory that is shared instead of copied.
  private static let maxSurplus = 512

  @unsafe
  private struct Header {
    var previous: UnsafeMutablePointer<Header>?
    var next: UnsafeMutablePointer<Header>?
    var byteCount: Int
    /// The memory with the value, retained; nil if it is in a file.
    var memory: Unmanaged<ValueMemory>?
    /// The file with the value, retained; nil if it is in memory.
    var file: Unmanaged<ValueFile>?
    /// Where the value begins, in the memory or the file.
    var offset = 0
    var checksum: UInt32 = 0

    /// The memory of the header and the bytes.
    var memoryBytes: Int {
      guard let memory = unsafe memory else { return unsafe MemoryLayout<Header>.size }
      return unsafe MemoryLayout<Header>.size + ValueMemory.overheadByteCount
        + memory._withUnsafeGuaranteedRef { $0.byteCount }
    }
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
      unsafe Self.release(current)
    }
  }

  /// Takes memory for values of this size in all from the budget of the process, with what was reserved before. So it
  /// can't fail if as much is reserved already.
  /// - Throws: `memoryLimit`, with nothing changed.
  mutating func reserve(_ byteCount: Int) throws(StorageError) {
    guard let budget else { return }
    let missing = byteCount - reservedBytes
    if missing <= 0 { budget.count(missing) } else if !budget.take(missing) { throw .memoryLimit }
    reservedBytes = byteCount
  }

  /// Adds a value in memory.
  /// - Parameter memory: The memory that the value is in; nil if it has to be copied. It is copied, too, if there is
  ///   much beside it.
  /// - Throws: `memoryLimit` or `outOfMemory`.
  mutating func make(
    _ value: UnsafeRawBufferPointer, in shared: ValueMemory? = nil
  ) throws(StorageError) -> UnsafeMutableRawPointer {
    let isReserved = reservedBytes >= value.count
    if let budget, !isReserved, !budget.take(value.count) { throw .memoryLimit }
    guard let (memory, offset) = unsafe Self.memory(for: value, shared) else {
      if !isReserved { budget?.count(-value.count) }
      throw .outOfMemory
    }
    if isReserved { reservedBytes -= value.count }
    memory.mapDidRetain(value.count, from: budget)
    return UnsafeMutableRawPointer(
      unsafe try link(
        Header(byteCount: value.count, memory: Unmanaged.passRetained(memory), file: nil, offset: offset)))
  }

  /// Returns memory that a value is in, and where; nil if the system has none for a copy.
  private static func memory(
    for value: UnsafeRawBufferPointer, _ shared: ValueMemory?
  ) -> (ValueMemory, offset: Int)? {
    if let shared, shared.byteCount - value.count <= maxSurplus, let offset = unsafe shared.offset(of: value) {
      return (shared, offset)
    }
    guard let memory = ValueMemory(byteCount: value.count) else { return nil }
    unsafe memory.room.copyMemory(from: value)
    return (memory, 0)
  }

  /// Adds a value in a file.
  mutating func make(_ value: SeparatedValue) throws(StorageError) -> UnsafeMutableRawPointer {
    let header = unsafe try link(
      Header(
        byteCount: value.byteCount, memory: nil, file: Unmanaged.passRetained(value.file), offset: value.offset,
        checksum: value.checksum))
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
    if unsafe header.pointee.file != nil {
      storedCount -= 1
      storedBytes -= unsafe header.pointee.byteCount
    }
    unsafe Self.release(header)
  }

  /// Adds a header, which owns what it refers to from now on.
  private mutating func link(_ header: Header) throws(StorageError) -> UnsafeMutablePointer<Header> {
    guard let room = unsafe malloc(MemoryLayout<Header>.size) else {
      unsafe Self.release(header)
      throw .outOfMemory
    }
    let new = unsafe room.bindMemory(to: Header.self, capacity: 1)
    unsafe new.initialize(to: header)
    unsafe new.pointee.next = newest
    unsafe newest?.pointee.previous = new
    unsafe newest = new
    memoryBytes += unsafe header.memoryBytes
    return unsafe new
  }

  private static func release(_ header: UnsafeMutablePointer<Header>) {
    unsafe release(header.pointee)
    unsafe Glibc.free(header)
  }

  /// Releases what a header refers to.
  private static func release(_ header: Header) {
    if let memory = unsafe header.memory {
      unsafe memory._withUnsafeGuaranteedRef { $0.mapWillRelease() }
      unsafe memory.release()
    }
    unsafe header.file?.release()
  }

  static func byteCount(of value: UnsafeMutableRawPointer) -> Int {
    unsafe header(of: value).pointee.byteCount
  }

  /// Returns the memory of the value.
  static func memoryBytes(of value: UnsafeMutableRawPointer) -> Int {
    unsafe header(of: value).pointee.memoryBytes
  }

  /// The maximum memory of a value beyond its bytes.
  static let maxOverheadByteCount = unsafe MemoryLayout<Header>.size + ValueMemory.overheadByteCount + maxSurplus

  /// Returns the value's bytes; nil if they are in a file.
  static func bytes(of value: UnsafeMutableRawPointer) -> UnsafeRawBufferPointer? {
    let header = unsafe header(of: value)
    guard let memory = unsafe header.pointee.memory else { return nil }
    let (start, count) = unsafe (header.pointee.offset, header.pointee.byteCount)
    return unsafe memory._withUnsafeGuaranteedRef { unsafe $0.bytes(start..<start + count) }
  }

  /// Returns a reference to a value in memory; nil if it is in a file.
  static func large(_ value: UnsafeMutableRawPointer) -> LargeValue? {
    let header = unsafe header(of: value)
    guard let memory = unsafe header.pointee.memory else { return nil }
    let (start, count) = unsafe (header.pointee.offset, header.pointee.byteCount)
    return unsafe LargeValue(memory: memory.takeUnretainedValue(), range: start..<start + count)
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
