import Platform

/// The files that have every commit of a directory store before the entries' files do (Protocol/directory-format.md,
/// §5).
///
/// Their space is allocated ahead, so a commit that fits can't fail for a full disk. Frames of records follow one
/// another after two copies of the header. Every journal has a salt in its header and in every frame, so that nothing a
/// client wrote, and nothing that was in the file before, is mistaken for a frame. The frames of all journals form one
/// sequence, in which every frame has its position.
package enum Journal {
  /// The name of the list of journals, and of the only journal in version 2 of the format.
  static let listName = ".journal"
  private static let prefix = ".journal-"
  static let start = 2 * JournalHeader.byteCount
  /// The bytes of a frame that hold its checksum.
  static let checksumRange = 4..<8
  static let saltOffset = 8
  static let frameHeaderByteCount = 32
  /// The size of a new journal of an idle store.
  package static let initialByteCount = 4 << 20
  /// The maximum size of a journal, unless a single write needs more.
  static let largeByteCount = 64 << 20
  /// The maximum size of a journal, and of all journals whose entries' files are yet to be written.
  static let maxByteCount = 1 << 30
  /// More than the numbers that a store can use up in its life.
  static let maxCount = Int(Int32.max)
  /// More than the bytes of frames, and the changes of the list, that a store can write in its life.
  static let maxPosition: UInt64 = 1 << 62 - 1

  static func name(_ number: Int) -> String { prefix + String(number) }

  static func isJournalOrList(_ name: String) -> Bool { name == listName || isName(name) }

  /// Returns the number in the name of a journal; nil for other files.
  static func number(_ name: String) -> Int? {
    guard name.hasPrefix(prefix), let number = Int(name.dropFirst(prefix.count)) else { return nil }
    return (0..<maxCount).contains(number) && Self.name(number) == name ? number : nil
  }

  /// Returns whether a file is a journal, by its name.
  static func isName(_ name: String) -> Bool { number(name) != nil }

  /// Returns whether bytes begin with a mark of a later version of the format, which differs in the last digit.
  static func isLater(than mark: [UInt8], _ bytes: some Collection<UInt8>) -> Bool {
    let start = Array(bytes.prefix(mark.count))
    guard start.count == mark.count, start.dropLast() == mark.dropLast(), let digit = start.last else { return false }
    return digit > mark[mark.count - 1] && digit <= UInt8(ascii: "9")
  }
}

/// The header of a journal. The file begins with two copies of it.
struct JournalHeader: Equatable {
  /// The space of a copy in the file.
  static let byteCount = 512
  private static let mark: [UInt8] = Array("LRDRJNL3".utf8)
  private static let fieldsByteCount = 28
  private static let version2Mark: [UInt8] = Array("LRDRDIR2".utf8)
  private static let version2FieldsByteCount = 36

  /// The number of the journal; 0 for the only one in version 2 of the format.
  let number: Int
  /// A number in all frames that clients can't see, so that nothing a client wrote is mistaken for a frame.
  let salt: UInt64
  /// In version 2 of the format, the store's revision before the frames.
  let base: UInt64

  /// Creates a header with a new salt, whose lowest byte isn't zero.
  init(number: Int) { (self.number, salt, base) = (number, .random(in: .min ... .max) | 1, 0) }

  private init(number: Int, salt: UInt64, base: UInt64) { (self.number, self.salt, self.base) = (number, salt, base) }

  var isVersion2: Bool { number == 0 }

  /// The size of the header of a frame.
  var frameHeaderByteCount: Int { isVersion2 ? 24 : Journal.frameHeaderByteCount }

  /// The beginning of a journal: both copies, and zeroes that show without the salt that there is no frame yet.
  var fileBytes: [UInt8] {
    var copy = Self.mark
    for field in [UInt64(number), salt] { copy.append(littleEndian: field) }
    copy.append(littleEndian: copy.checksum())
    copy += [UInt8](repeating: 0, count: Self.byteCount - copy.count)
    return copy + copy + [UInt8](repeating: 0, count: Journal.frameHeaderByteCount)
  }

  /// Decodes a valid copy from the first bytes of a journal; nil if there is none.
  init?(in bytes: [UInt8], number: Int) {
    let candidates = [0, Self.byteCount].compactMap { offset in
      number == 0 ? Self.version2(bytes, at: offset) : Self.version3(bytes, at: offset, number)
    }
    // In version 2, the copy with the greater sequence counts.
    guard let newest = candidates.max(by: { $0.sequence < $1.sequence }) else { return nil }
    self = newest.header
  }

  /// Returns whether the first bytes of a journal are those of a later version of the format. Both copies are.
  static func isOfLaterVersion(_ bytes: [UInt8]) -> Bool {
    [0, byteCount].allSatisfy { Journal.isLater(than: mark, bytes.dropFirst($0)) }
  }

  private static func version3(_ bytes: [UInt8], at offset: Int, _ number: Int) -> (header: Self, sequence: UInt64)? {
    guard bytes.count >= offset + fieldsByteCount else { return nil }
    let fields = Array(bytes[offset..<offset + fieldsByteCount])
    guard fields.starts(with: mark), fields.integer(at: 8, as: UInt64.self) == UInt64(number),
      Array(fields[..<24]).checksum() == fields.integer(at: 24, as: UInt32.self)
    else { return nil }
    return (Self(number: number, salt: fields.integer(at: 16, as: UInt64.self), base: 0), 0)
  }

  private static func version2(_ bytes: [UInt8], at offset: Int) -> (header: Self, sequence: UInt64)? {
    guard bytes.count >= offset + version2FieldsByteCount else { return nil }
    let fields = Array(bytes[offset..<offset + version2FieldsByteCount])
    let (sequence, base) = (fields.integer(at: 8, as: UInt64.self), fields.integer(at: 16, as: UInt64.self))
    // Neither field ever reaches a value without a next one.
    guard fields.starts(with: version2Mark), max(sequence, base) <= CommitBuffer.revisions.upperBound,
      Array(fields[..<32]).checksum() == fields.integer(at: 32, as: UInt32.self)
    else { return nil }
    return (Self(number: 0, salt: fields.integer(at: 24, as: UInt64.self), base: base), sequence)
  }
}

/// A valid frame of a journal: where its records are, and its place among all frames.
struct JournalFrame {
  let end: Int
  let records: Range<Int>
  /// The position of the frame in the sequence of all frames, in bytes.
  let position: UInt64
  /// The position before which everything was on disk when the frame was written.
  let synced: UInt64

  /// Decodes the frame at an offset; nil if there is none.
  /// - Parameters:
  ///   - bytes: A part of the journal.
  ///   - offset: The offset in `bytes`.
  ///   - base: The offset of `bytes` in the journal.
  init?(in bytes: [UInt8], at offset: Int, base: Int = 0, of header: JournalHeader) {
    let recordsStart = offset + header.frameHeaderByteCount
    guard recordsStart <= bytes.count,
      bytes.integer(at: offset + Journal.saltOffset, as: UInt64.self) == header.salt
    else { return nil }
    let byteCount = Int(bytes.integer(at: offset, as: UInt32.self))
    guard byteCount > 0, byteCount <= bytes.count - recordsStart else { return nil }
    end = recordsStart + byteCount
    records = recordsStart..<end
    if header.isVersion2 {
      // Before there were several journals, the position was the offset.
      (position, synced) = (UInt64(base + offset), bytes.integer(at: offset + 16, as: UInt64.self))
    } else {
      position = bytes.integer(at: offset + 16, as: UInt64.self)
      synced = bytes.integer(at: offset + 24, as: UInt64.self)
    }
    let checksum = unsafe bytes.withBytes { [end] bytes in
      unsafe UnsafeRawBufferPointer(rebasing: bytes[offset..<end]).checksum(excluding: Journal.checksumRange)
    }
    guard synced <= position, position <= Journal.maxPosition,
      checksum == bytes.integer(at: offset + 4, as: UInt32.self)
    else { return nil }
  }

  /// The size of the frame.
  func byteCount(_ header: JournalHeader) -> Int { header.frameHeaderByteCount + records.count }

  /// What a frame contains.
  struct Summary {
    let firstRevision: UInt64
    let lastRevision: UInt64
    let operationCount: Int
  }

  /// Adds the operations of the frame to others: all of them, or none if one is damaged.
  /// - Parameters:
  ///   - base: The offset of `bytes` in the journal.
  ///   - previous: The last revision of the frames before this one; 0 if there is none.
  func addOperations(
    in bytes: [UInt8], base: Int = 0, of journal: Int, after previous: UInt64, to pending: inout PendingOperations
  ) throws(CommitDamage) -> Summary {
    unsafe try bytes.withBytes { (bytes) throws(CommitDamage) in
      let bytes = unsafe UnsafeRawBufferPointer(rebasing: bytes[records])
      var (first, last, count, lastStart): (UInt64, UInt64, Int, Int) = (0, previous, 0, -1)
      var verifier = unsafe CommitReader(bytes)
      while let operation = try verifier.next() {
        let start = verifier.recordStart
        guard CommitBuffer.revisions.contains(operation.revision), start == lastStart || operation.revision > last
        else { throw CommitDamage(offset: start, reason: "revisions are out of order") }
        if let reason = operation.invalidContents { throw CommitDamage(offset: start, reason: reason) }
        if count == 0 { first = operation.revision }
        (last, count, lastStart) = (operation.revision, count + 1, start)
      }
      var reader = unsafe CommitReader(bytes)
      while let operation = try reader.next() { pending.add(operation, in: journal, at: base + records.lowerBound) }
      return Summary(firstRevision: first, lastRevision: last, operationCount: count)
    }
  }
}

/// The list of a directory store's journals, in a file of its own. It shows that a journal is missing and, after a
/// clean stop, that frames are.
///
/// The file has two copies, which are written in turns, so an interrupted write damages at most the older one.
struct JournalList: Equatable {
  private static let mark: [UInt8] = Array("LRDRDIR3".utf8)
  private static let fieldsByteCount = 60
  private static let copyByteCount = 512
  static let fileByteCount = 2 * copyByteCount
  /// The maximum of one more than the number of the last journal.
  private static let maxNumber = 1 << 30 - 1
  /// The end in the list of a server that is running, or was killed.
  private static let unknownEnd = UInt64.max

  /// The number of times that the list was written.
  private var sequence: UInt64
  /// The numbers of the journals.
  private(set) var numbers: Range<Int>
  /// The position of the first frame in them.
  private(set) var start: UInt64
  /// A revision that the store has assigned, and at least the one before the first frame.
  private(set) var revision: UInt64
  /// The position after the last frame if the server was stopped in order.
  private(set) var end: UInt64?

  /// Describes the journals of a store that has none yet.
  init(numbers: Range<Int> = 1..<1, start: UInt64 = 0, revision: UInt64) {
    (sequence, self.numbers, self.start, self.revision, end) = (0, numbers, start, revision, nil)
  }

  /// Adds the next journal.
  mutating func append() {
    numbers = numbers.lowerBound..<numbers.upperBound + 1
    (sequence, end) = (sequence + 1, nil)
  }

  /// Removes the journals before that number.
  mutating func removeFirst(before number: Int, start: UInt64, revision: UInt64) {
    numbers = number..<numbers.upperBound
    self.start = start
    raise(revision)
    (sequence, end) = (sequence + 1, nil)
  }

  /// Makes this the newest list without changing what it says.
  mutating func renew() { sequence += 1 }

  /// Records that the store has assigned a revision. This takes effect with the next change.
  mutating func raise(_ revision: UInt64) { self.revision = max(self.revision, revision) }

  /// Records where the frames end; nil for the beginning of work.
  mutating func setEnd(_ position: UInt64?) { (sequence, end) = (sequence + 1, position) }

  /// The copy's bytes and its place in the file.
  var copy: (bytes: [UInt8], offset: Int) {
    var bytes = Self.mark
    let (first, upper) = (UInt64(numbers.lowerBound), UInt64(numbers.upperBound))
    for field in [sequence, first, upper, start, revision, end ?? Self.unknownEnd] {
      bytes.append(littleEndian: field)
    }
    bytes.append(littleEndian: bytes.checksum())
    return (bytes, Int(sequence % 2) * Self.copyByteCount)
  }

  /// The contents of a new file.
  var fileBytes: [UInt8] {
    var file = [UInt8](repeating: 0, count: Self.fileByteCount)
    let (bytes, offset) = copy
    file.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    return file
  }

  /// Decodes the newer valid copy; nil if neither is valid.
  init?(in bytes: [UInt8]) {
    let copies = [0, Self.copyByteCount].compactMap { offset -> JournalList? in
      guard bytes.count >= offset + Self.fieldsByteCount else { return nil }
      return JournalList(Array(bytes[offset..<offset + Self.fieldsByteCount]))
    }
    guard let newest = copies.max(by: { $0.sequence < $1.sequence }) else { return nil }
    self = newest
  }

  /// Returns whether a list was written by a later version of the format, whose copies have their checksum in the same
  /// place. A copy without a valid checksum may be one, unless another copy is valid.
  static func isOfLaterVersion(_ bytes: [UInt8]) -> Bool {
    let copies = [0, copyByteCount].map { Array(bytes.dropFirst($0).prefix(fieldsByteCount)) }
    let later = copies.filter { Journal.isLater(than: mark, $0) }
    return later.contains(where: hasChecksum) || !later.isEmpty && JournalList(in: bytes) == nil
  }

  /// Returns whether one of the copies was written and is not valid.
  static func hasInvalidCopy(_ bytes: [UInt8]) -> Bool {
    [0, copyByteCount].contains { offset in
      let copy = Array(bytes.dropFirst(offset).prefix(fieldsByteCount))
      return copy.contains { $0 != 0 } && JournalList(copy) == nil
    }
  }

  private static func hasChecksum(_ fields: [UInt8]) -> Bool {
    let body = fieldsByteCount - 4
    return fields.count == fieldsByteCount
      && Array(fields[..<body]).checksum() == fields.integer(at: body, as: UInt32.self)
  }

  private init?(_ fields: [UInt8]) {
    guard fields.starts(with: Self.mark), Self.hasChecksum(fields) else { return nil }
    let values = (1...6).map { fields.integer(at: 8 * $0, as: UInt64.self) }
    guard values[1] <= values[2], values[2] <= UInt64(Self.maxNumber) else { return nil }
    (sequence, numbers, start) = (values[0], Int(values[1])..<Int(values[2]), values[3])
    (revision, end) = (values[4], values[5] == Self.unknownEnd ? nil : values[5])
    guard isValid else { return nil }
  }

  /// Whether a store that has used up no numbers can have this list. No other is ever written.
  var isValid: Bool {
    numbers.upperBound <= Self.maxNumber && sequence <= Journal.maxPosition
      && revision <= CommitBuffer.revisions.upperBound && start <= Journal.maxPosition
      && end.map { $0 >= start && $0 <= Journal.maxPosition } ?? true
  }
}
