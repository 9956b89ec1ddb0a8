// What happens to a file that was cut off:
//
// After each sync, an engine notes how far its files are on disk: the log in its manifest (`noteBriefly` in
// `LogManifest`), the directory beside its list of journals (`SyncedPosition`). A note costs a write of a few bytes to
// the page cache and no sync, so it survives a killed process. Files that end before it are damaged; what is missing
// behind it was never acknowledged as durable.

import Glibc
import Platform

/// What is known about the end of a log outside of its segments: `Protocol/log-format.md`, section 5.
///
/// All of it was on disk when it was written. It only ever grows, so it never has to be taken back.
struct LogManifest: Equatable, Sendable {
  /// The number of the newest segment; 0 if there is none.
  fileprivate(set) var number: UInt64
  /// The end of the records in that segment, at least.
  fileprivate(set) var end: Int
  /// The revision of the store, at least.
  fileprivate(set) var revision: UInt64
  let identity: UInt64
  /// The number of changes.
  fileprivate var sequence: UInt64 = 0

  init(identity: UInt64, number: UInt64 = 0, end: Int = 0, revision: UInt64 = 0) {
    self.identity = identity
    self.number = number
    self.end = end
    self.revision = revision
  }

  /// Returns a manifest with everything that this one notes, and that the log reaches this far.
  /// - Parameter segment: The number of the newest segment, and the end of its records.
  fileprivate func including(_ segment: (number: UInt64, end: Int)?, revision: UInt64) -> LogManifest {
    var next = self
    next.revision = max(revision, next.revision)
    if let segment, segment.number > number || segment.number == number && segment.end > end {
      (next.number, next.end) = segment
    }
    return next
  }

  /// Whether a log that has used up no numbers can have this manifest. No other is ever written.
  fileprivate var isValid: Bool {
    sequence < 1 << 62 && number <= SegmentHeader.numbers.upperBound
      && revision <= CommitBuffer.revisions.upperBound
  }

  /// Returns what is missing from a log, if anything is.
  /// - Parameters:
  ///   - header: The header of the newest segment.
  ///   - end: The end of the records in it.
  ///   - lastRevision: The revision of the log.
  func shortage(of header: SegmentHeader, end: Int, lastRevision: UInt64) -> String? {
    if header.number == number, !header.isMadeByCompaction, end < self.end {
      return "the segment ends here, but its records once ended at byte \(self.end)"
    }
    if lastRevision < revision { return "the log ends here at revision \(lastRevision), but it once had \(revision)" }
    return nil
  }
}

/// The file with the manifest. It has two copies, so that an interrupted write damages at most the one that isn't valid
/// yet. It stays open, and changes without space or another descriptor.
///
/// What a commit has made durable is noted without a sync, which would cost as much as the commit: the system keeps it
/// when the process is killed. These notes all go to the same copy, so that the other one stays on disk.
struct ManifestFile {
  static let name = "manifest"
  /// The space of a copy in the file, which is written atomically.
  private static let copyByteCount = 512
  private static let magic: [UInt8] = Array("LARDRMAN".utf8)
  private static let version: UInt16 = 1
  private static let checksumRange = 12..<16
  private static let fieldsByteCount = 56

  private let file: any File
  private(set) var manifest: LogManifest
  /// The newest manifest that is certainly on disk; nil before this object has synced one. An earlier process may have
  /// ended before the sync.
  private var durable: LogManifest?

  private init(_ file: any File, _ manifest: LogManifest, durable: LogManifest?) {
    (self.file, self.manifest, self.durable) = (file, manifest, durable)
  }

  /// Opens the manifest of a log.
  /// - Returns: Nil if there is none.
  static func open(in folder: LogFolder, for access: FileAccess) throws(LogError) -> ManifestFile? {
    let (file, bytes) = try LogError.wrapping(folder.manifestPath) {
      () throws(SystemError) -> ((any File)?, [UInt8]) in
      guard try folder.exists(folder.manifestPath) else { return (nil, []) }
      let file = try folder.open(folder.manifestPath, access)
      return (file, try file.bytes(at: 0, count: 2 * copyByteCount))
    }
    guard let file else { return nil }
    if isOfLaterVersion(bytes) { throw .laterVersion(path: folder.manifestPath) }
    let copies = [0, copyByteCount].compactMap { decode(bytes, at: $0) }
    guard let newest = copies.max(by: { $0.sequence < $1.sequence }) else {
      throw .damaged(path: folder.manifestPath, offset: 0, reason: "neither copy of the manifest is valid")
    }
    return ManifestFile(file, newest, durable: nil)
  }

  /// Creates the manifest of a log that has none.
  static func create(
    _ manifest: LogManifest, in folder: LogFolder, _ openFolder: any Folder
  ) throws(SystemError) -> ManifestFile {
    let file = try folder.create(folder.newManifestPath)
    for copy in 0..<2 { try file.write(encode(manifest), at: copy * copyByteCount) }
    try file.allocate(2 * copyByteCount)
    try file.sync()
    try folder.rename(folder.newManifestPath, to: folder.manifestPath)
    try openFolder.sync()
    return ManifestFile(file, manifest, durable: manifest)
  }

  /// Notes what is on disk, and makes that durable. Does nothing if this object has done so already.
  /// - Parameter segment: The number of the newest segment, and the end of its records.
  mutating func note(segment: (number: UInt64, end: Int)? = nil, revision: UInt64) throws(SystemError) {
    if let durable, durable.including(segment, revision: revision) == durable { return }
    try write(manifest.including(segment, revision: revision))
    try file.sync()
    durable = manifest
  }

  /// Notes what is on disk for the case that the process is killed. A failure costs only this note.
  /// - Parameters:
  ///   - segment: The number of the newest segment, and the end of its records.
  ///   - revision: The revision of the last record.
  mutating func noteBriefly(segment: (number: UInt64, end: Int), revision: UInt64) {
    let next = manifest.including(segment, revision: revision)
    if next != manifest { try? write(next) }
  }

  private mutating func write(_ manifest: LogManifest) throws(SystemError) {
    var next = manifest
    // The parity is the copy. A copy that may be the only one on disk isn't overwritten.
    let isOnlyOne = durable.map { $0.sequence == next.sequence } ?? true
    next.sequence += isOnlyOne ? 1 : 2
    guard next.isValid else { throw SystemError("the manifest's numbers are used up", errno: EOVERFLOW) }
    try file.write(Self.encode(next), at: Int(next.sequence % 2) * Self.copyByteCount)
    self.manifest = next
  }

  private static func encode(_ manifest: LogManifest) -> [UInt8] {
    var bytes = magic
    bytes.reserveCapacity(fieldsByteCount)
    bytes.append(littleEndian: version)
    bytes.append(littleEndian: 0 as UInt16)
    bytes.append(littleEndian: 0 as UInt32)
    for field in [manifest.sequence, manifest.identity, manifest.number, UInt64(manifest.end), manifest.revision] {
      bytes.append(littleEndian: field)
    }
    bytes.replace(at: checksumRange.lowerBound, littleEndian: bytes.checksum(excluding: checksumRange))
    return bytes
  }

  /// Returns whether a manifest was written by a later version of the format, whose copies have their version and their
  /// checksum in the same places. A copy without a valid checksum may be one, unless another copy is valid.
  private static func isOfLaterVersion(_ bytes: [UInt8]) -> Bool {
    let later = [0, copyByteCount].map { Array(bytes.dropFirst($0).prefix(fieldsByteCount)) }.filter { copy in
      copy.count == fieldsByteCount && copy.starts(with: magic) && copy.integer(at: 8, as: UInt16.self) > version
    }
    let isCertain = later.contains { copy in
      copy.checksum(excluding: checksumRange) == copy.integer(at: checksumRange.lowerBound, as: UInt32.self)
    }
    return isCertain || !later.isEmpty && [0, copyByteCount].allSatisfy { decode(bytes, at: $0) == nil }
  }

  private static func decode(_ bytes: [UInt8], at offset: Int) -> LogManifest? {
    guard bytes.count >= offset + fieldsByteCount else { return nil }
    let copy = Array(bytes[offset..<offset + fieldsByteCount])
    let fields = (0..<5).map { copy.integer(at: 16 + 8 * $0, as: UInt64.self) }
    guard fields[3] <= UInt64(LogConfiguration.maxFileByteCount) else { return nil }
    var manifest = LogManifest(identity: fields[1], number: fields[2], end: Int(fields[3]), revision: fields[4])
    manifest.sequence = fields[0]
    return manifest.isValid && encode(manifest) == copy ? manifest : nil
  }
}
