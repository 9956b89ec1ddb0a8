import Platform

/// Appends commits to the journals of a directory store. Used by the store's commit thread.
///
/// It never creates a journal: the settling thread does, ahead of need, and hands it over in the exchange.
struct JournalWriter {
  /// The size up to which a frame is copied, to be written by one call.
  private static let copiedByteCount = 64 << 10

  private let exchange: JournalExchange
  private var current: JournalFile?
  /// The journal that follows the current one.
  private var next: JournalFile?
  /// The position after the last frame.
  private(set) var position: UInt64
  /// The journals before the current one that this thread has not synced, with the positions of their ends.
  private var unsynced: [(file: any File, position: UInt64)] = []

  /// - Parameter current: The journal to append to; nil if there is no space for one yet.
  init(_ current: JournalFile?, position: UInt64, exchange: JournalExchange) {
    (self.current, self.position, self.exchange) = (current, position, exchange)
  }

  /// The number of bytes of records that are certain to fit. A commit that doesn't fit into the current journal goes
  /// into the next one with all that follow it.
  var availableByteCount: Int { max(current?.availableByteCount ?? 0, next?.availableByteCount ?? 0) }

  /// The size of the journal that follows the current one; nil if there is none yet.
  var nextCapacity: Int? { next?.capacity }

  var isHalfFull: Bool { current.map { $0.end > $0.capacity / 2 } ?? true }

  /// Accepts a journal that the settling thread has created.
  mutating func accept(_ journal: JournalFile) { next = journal }

  /// Continues in the next journal if the current one has that number and ends there.
  mutating func leave(_ number: Int, endingAt end: Int) {
    if let current, current.number == number, current.end == end, next != nil { startNext() }
  }

  private mutating func startNext() {
    // The settling thread syncs journals, too. Keep no file open that another thread may have removed.
    let synced = exchange.synced
    unsynced.removeAll { $0.position <= synced }
    if let current, position > synced { unsynced.append((current.file, position)) }
    (current, next) = (next, nil)
    if let current { exchange.didStart(current.number) }
  }

  /// Appends a frame.
  mutating func append(_ records: UnsafeRawBufferPointer) throws(SystemError) {
    if current?.fits(records.count) != true { startNext() }
    guard var journal = current, journal.fits(records.count) else {
      preconditionFailure("there is no space for a commit of \(records.count) bytes")
    }
    var header: [UInt8] = []
    header.reserveCapacity(Journal.frameHeaderByteCount + (records.count <= Self.copiedByteCount ? records.count : 0))
    header.append(littleEndian: UInt32(records.count))
    header.append(littleEndian: 0 as UInt32)
    header.append(littleEndian: journal.salt)
    header.append(littleEndian: position)
    header.append(littleEndian: exchange.synced)
    let range = Journal.checksumRange
    let before = unsafe header.withBytes { unsafe $0.checksum(excluding: range) }
    unsafe header.replace(at: range.lowerBound, littleEndian: records.checksum(after: before))
    if records.count <= Self.copiedByteCount {
      unsafe header.append(contentsOf: records)
      try journal.file.write(header, at: journal.end)
    } else {
      try journal.file.write(header, at: journal.end)
      unsafe try journal.file.write(records, at: journal.end + Journal.frameHeaderByteCount)
    }
    journal.end += Journal.frameHeaderByteCount + records.count
    position += UInt64(Journal.frameHeaderByteCount + records.count)
    current = journal
    exchange.didAppend(to: journal.end, position: position)
  }

  /// Takes what another thread has to sync so that all frames are durable, with the position after them.
  mutating func takeUnsynced() -> (files: [any File], position: UInt64) {
    defer { unsynced.removeAll() }
    return (unsynced.map(\.file) + [current?.file].compactMap(\.self), position)
  }

  /// Makes all frames durable.
  mutating func sync() throws(SystemError) {
    let synced = exchange.synced
    guard synced < position else { return unsynced.removeAll() }
    for journal in unsynced where journal.position > synced { try journal.file.sync() }
    unsynced.removeAll()
    try current?.file.sync()
    exchange.didSync(to: position)
  }
}
