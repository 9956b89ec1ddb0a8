import Glibc
import Platform

/// What a directory store's journal holds, as it was found.
struct DirectoryJournalContents {
  let bytes: [UInt8]
  let sequence: UInt64
  private(set) var lastRevision: UInt64
  /// Where the valid frames end.
  private(set) var tail = DirectoryJournal.start
  /// Whether a frame follows that was being written when all ended.
  private(set) var isTorn = false
  private(set) var pending = PendingOperations()
  private(set) var operationCount = 0

  /// Damage to what had been on the disk: where, and what it is. Frames ahead of it are good.
  private(set) var damage: CommitDamage?

  init(reading file: any File) throws(SystemError) {
    // Before all of it is read: the file's size is only what somebody says.
    guard let header = DirectoryJournal.readHeader(try file.bytes(at: 0, count: DirectoryJournal.start)) else {
      (bytes, sequence, lastRevision) = ([], 0, 0)
      damage = CommitDamage(offset: 0, reason: "neither header is valid")
      return
    }
    (sequence, lastRevision) = (header.sequence, header.base)
    guard try file.byteCount() <= DirectoryJournal.maximumByteCount else {
      bytes = []
      damage = CommitDamage(offset: DirectoryJournal.maximumByteCount, reason: "the file is larger than any journal")
      return
    }
    bytes = try file.contents()
    while let frame = frame(at: tail), frame.previous == lastRevision {
      let records = tail + DirectoryJournal.frameHeaderByteCount..<tail + frame.byteCount
      do throws(CommitDamage) { try read(records) } catch {
        damage = CommitDamage(offset: records.lowerBound + error.offset, reason: error.reason)
        return
      }
      tail = records.upperBound
    }
    lookBehindTail()
  }

  private mutating func read(_ records: Range<Int>) throws(CommitDamage) {
    var (pending, last, count) = (pending, lastRevision, operationCount)
    unsafe try bytes.withBytes { (bytes) throws(CommitDamage) in
      var reader = unsafe CommitReader(UnsafeRawBufferPointer(rebasing: bytes[records]))
      while let operation = try reader.next() {
        guard CommitBuffer.revisions.contains(operation.revision) else {
          throw CommitDamage(offset: reader.recordStart, reason: "the revision is impossible")
        }
        pending.note(operation, at: records.lowerBound)
        last = max(last, operation.revision)
        count += 1
      }
    }
    (self.pending, lastRevision, operationCount) = (pending, last, count)
  }

  /// A frame that can be read where the frames have ended tells whether what is missing before it had been on the disk.
  private mutating func lookBehindTail() {
    guard tail + DirectoryJournal.frameHeaderByteCount <= bytes.count else { return }
    if header(at: tail).previous == lastRevision, header(at: tail).count > 0 { isTorn = true }
    var place = tail
    while let next = nextPlausibleFrame(from: place) {
      place = next + 1
      guard let frame = frame(at: next) else { continue }
      isTorn = true
      guard frame.synced <= tail else {
        damage = CommitDamage(offset: tail, reason: "a frame is invalid, and a later one is not")
        return
      }
    }
  }

  /// The next place where the fields of a frame's header are what they may be. Checksums of all places would take too long.
  private func nextPlausibleFrame(from start: Int) -> Int? {
    unsafe bytes.withBytes { bytes in
      let lastRevisions = lastRevision...lastRevision + 1 << 32
      var place = start
      while place <= bytes.count - DirectoryJournal.frameHeaderByteCount {
        let word = unsafe bytes.integer(at: place, as: UInt64.self)
        if word == 0 {
          place += 5
          continue
        }
        let count = Int(UInt32(truncatingIfNeeded: word))
        if count > 0, count <= bytes.count - place,
          unsafe lastRevisions.contains(bytes.integer(at: place + 8, as: UInt64.self)),
          unsafe bytes.integer(at: place + 16, as: UInt64.self) <= UInt64(place)
        {
          return place
        }
        place += 1
      }
      return nil
    }
  }

  private func header(at place: Int) -> (count: Int, crc: UInt32, previous: UInt64, synced: UInt64) {
    (
      Int(bytes.integer(at: place, as: UInt32.self)), bytes.integer(at: place + 4, as: UInt32.self),
      bytes.integer(at: place + 8, as: UInt64.self), bytes.integer(at: place + 16, as: UInt64.self)
    )
  }

  /// A valid frame of this sequence that isn't older than the tail; nil when there is none at that place.
  private func frame(at place: Int) -> (byteCount: Int, previous: UInt64, synced: Int)? {
    guard place + DirectoryJournal.frameHeaderByteCount <= bytes.count else { return nil }
    let header = header(at: place)
    let byteCount = DirectoryJournal.frameHeaderByteCount + header.count
    guard header.count > 0, byteCount <= bytes.count - place, header.synced <= UInt64(place),
      header.previous >= lastRevision
    else { return nil }
    let crc = unsafe bytes.withBytes { bytes in
      unsafe DirectoryJournal.frameChecksum(
        UnsafeRawBufferPointer(rebasing: bytes[place..<place + byteCount]), sequence: sequence)
    }
    return crc == header.crc ? (byteCount, header.previous, Int(header.synced)) : nil
  }
}
