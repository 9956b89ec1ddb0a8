import Glibc
import Platform

/// What a directory store's journal holds, as it was found.
struct WriteAheadLogContents {
  let bytes: [UInt8]
  let header: WriteAheadLogHeader
  private(set) var lastRevision: UInt64
  /// Where the valid frames end.
  private(set) var tail = WriteAheadLog.start
  /// Whether a frame follows that was being written when all ended.
  private(set) var isTorn = false
  private(set) var pending = PendingOperations()
  private(set) var operationCount = 0

  /// Damage to what had been on the disk: where, and what it is. Frames ahead of it are good.
  private(set) var damage: CommitDamage?

  init(reading file: any File) throws(SystemError) {
    // Before all of it is read: the file's size is only what somebody says.
    guard let header = WriteAheadLogHeader(newestIn: try file.bytes(at: 0, count: WriteAheadLog.start)) else {
      (bytes, self.header, lastRevision) = ([], WriteAheadLogHeader(sequence: 0, base: 0), 0)
      damage = CommitDamage(offset: 0, reason: "neither header is valid in version 2 of the format")
      return
    }
    (self.header, lastRevision) = (header, header.base)
    guard try file.byteCount() <= WriteAheadLog.maximumByteCount else {
      bytes = []
      damage = CommitDamage(offset: WriteAheadLog.maximumByteCount, reason: "the file is larger than any journal")
      return
    }
    bytes = try file.contents()
    while let frame = frame(at: tail) {
      let records = tail + WriteAheadLog.frameHeaderByteCount..<tail + frame.byteCount
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
    var place = tail
    while let next = nextSalt(from: place + WriteAheadLog.saltOffset) {
      place = next - WriteAheadLog.saltOffset
      if place == tail { isTorn = true }
      if let frame = frame(at: place) {
        isTorn = true
        guard frame.synced <= tail else {
          damage = CommitDamage(offset: tail, reason: "a frame is invalid, and a later one is not")
          return
        }
      }
      place += 1
    }
  }

  /// The next place that has the salt, as only frames since the journal last started over do: what else lies there, of clients' making
  /// most of it, is passed over without a look at what it claims to be.
  func nextSalt(from start: Int) -> Int? {
    unsafe bytes.withBytes { bytes in
      var place = start
      while place <= bytes.count - 8 {
        let word = unsafe bytes.integer(at: place, as: UInt64.self)
        if word == header.salt { return place }
        // The salt's lowest byte isn't zero.
        place += word == 0 ? 8 : 1
      }
      return nil
    }
  }

  /// The valid frame at that place; nil when there is none.
  private func frame(at place: Int) -> (byteCount: Int, synced: Int)? {
    guard place + WriteAheadLog.frameHeaderByteCount <= bytes.count,
      bytes.integer(at: place + WriteAheadLog.saltOffset, as: UInt64.self) == header.salt
    else { return nil }
    let count = Int(bytes.integer(at: place, as: UInt32.self))
    let byteCount = WriteAheadLog.frameHeaderByteCount + count
    let synced = bytes.integer(at: place + 16, as: UInt64.self)
    guard count > 0, byteCount <= bytes.count - place, synced <= UInt64(place) else { return nil }
    let checksum = unsafe bytes.withBytes { bytes in
      unsafe UnsafeRawBufferPointer(rebasing: bytes[place..<place + byteCount])
        .checksum(leavingOut: WriteAheadLog.checksumPlace)
    }
    guard checksum == bytes.integer(at: place + 4, as: UInt32.self) else { return nil }
    return (byteCount, Int(synced))
  }
}
