import Platform

/// What is known about a durable store's history outside of its engine's files: Protocol/data-directory.md, §8.
///
/// A history continues when a store is opened and has everything that its clients may have seen. Otherwise another one
/// begins, with an incarnation of its own and beyond every revision of the earlier one.
struct StoreHistory: Equatable, Sendable {
  /// Whether the store was closed, or how much a crash can take from it.
  enum State: UInt32, Sendable {
    /// The store was closed after all of its commits had been written.
    case closed = 0
    /// The store is open, and its clients have seen only commits that survive a crash.
    case openAlways = 1
    /// The store is open, and a crash can undo commits that its clients have seen.
    case openOther = 2

    /// The state of an open store.
    init(_ durability: Durability) { self = durability == .always ? .openAlways : .openOther }
  }

  /// The identity of the history, 1 to 2⁶³ − 1.
  let incarnation: UInt64
  var state: State
  /// The store's revision. It is greater than the last commit's if revisions were skipped before the next one.
  var revision: UInt64
  /// The revision of the last commit in the engine's files.
  var commitRevision: UInt64

  /// More revisions than a crash can take: each takes at least 25 bytes, in memory or on their way to the disk.
  static let skippedCount: UInt64 = 1 << 32
  /// The greatest revision to which others are skipped.
  static let maxSkippedRevision: UInt64 = 1 << 61

  /// The history of a new store that is still empty.
  static var new: StoreHistory {
    StoreHistory(incarnation: makeIncarnation(), state: .closed, revision: 0, commitRevision: 0)
  }

  static func makeIncarnation() -> UInt64 { .random(in: 1..<1 << 63) }

  /// Returns the history of a store that has been opened.
  /// - Parameters:
  ///   - recorded: What was last recorded; nil if that is unknown.
  ///   - commitRevision: The revision of the last commit that the engine has found.
  ///   - now: The time in milliseconds since 1970.
  static func opened(
    after recorded: StoreHistory?, commitRevision: UInt64, _ durability: Durability, now: UInt64
  ) -> StoreHistory {
    if let recorded, recorded.continues(at: commitRevision) {
      return StoreHistory(
        incarnation: recorded.incarnation, state: State(durability), revision: max(recorded.revision, commitRevision),
        commitRevision: commitRevision)
    }
    let lowest = max(recorded?.revision ?? 0, commitRevision)
    // If nothing is known, as of an old copy of the store, the time is beyond every revision of a store that has made
    // less than a million a second.
    let (microseconds, hasOverflowed) = now.multipliedReportingOverflow(by: 1_000)
    let skipped = max(lowest &+ skippedCount, hasOverflowed ? 0 : microseconds)
    return StoreHistory(
      incarnation: makeIncarnation(), state: State(durability), revision: max(lowest, min(skipped, maxSkippedRevision)),
      commitRevision: commitRevision)
  }

  /// Returns whether a store whose last commit has this revision has everything that its clients may have seen.
  private func continues(at commitRevision: UInt64) -> Bool {
    switch state {
    case .closed: commitRevision == self.commitRevision
    case .openAlways: commitRevision >= self.commitRevision
    case .openOther: false
    }
  }
}

// MARK: - The file

extension StoreHistory {
  private static let magic: [UInt8] = Array("LARDRHIS".utf8)
  private static let version: UInt16 = 1
  private static let checksumRange = 12..<16
  static let byteCount = 48

  var bytes: [UInt8] {
    var bytes = Self.magic
    bytes.append(littleEndian: Self.version)
    bytes.append(littleEndian: 0 as UInt16)
    bytes.append(littleEndian: 0 as UInt32)
    bytes.append(littleEndian: incarnation)
    bytes.append(littleEndian: revision)
    bytes.append(littleEndian: commitRevision)
    bytes.append(littleEndian: state.rawValue)
    bytes.append(littleEndian: 0 as UInt32)
    bytes.replace(at: Self.checksumRange.lowerBound, littleEndian: bytes.checksum(excluding: Self.checksumRange))
    return bytes
  }

  /// Decodes what `bytes` returns; nil if it is anything else.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= Self.byteCount else { return nil }
    let bytes = Array(bytes[..<Self.byteCount])
    guard let state = State(rawValue: bytes.integer(at: 40, as: UInt32.self)) else { return nil }
    incarnation = bytes.integer(at: 16, as: UInt64.self)
    revision = bytes.integer(at: 24, as: UInt64.self)
    commitRevision = bytes.integer(at: 32, as: UInt64.self)
    self.state = state
    guard (1...UInt64(Int64.max)).contains(incarnation), revision <= CommitBuffer.revisions.upperBound,
      commitRevision <= revision, self.bytes == bytes
    else {
      return nil
    }
  }
}

/// The file `history` in the folder of a store.
///
/// It is overwritten in place, which needs no space, and nothing depends on its being whole: a history that can't be
/// read is one that doesn't continue.
struct StoreHistoryFile: Sendable {
  static let name = "history"
  private let folder: String
  private let fileSystem: any FileSystem

  init(in folder: String, on fileSystem: any FileSystem) { (self.folder, self.fileSystem) = (folder, fileSystem) }

  private var path: String { folder + "/" + Self.name }

  /// Returns what was last recorded; nil if that is unknown.
  func read() throws(DataDirectoryError) -> StoreHistory? {
    try attempt { () throws(SystemError) in
      guard case .file? = try fileSystem.kind(of: path) else { return nil }
      return StoreHistory(try fileSystem.open(path, .reading).bytes(at: 0, count: StoreHistory.byteCount))
    }
  }

  /// Records a history. It is on disk when this returns, or there is no file if there is no space for one.
  func write(_ history: StoreHistory) throws(DataDirectoryError) {
    try attempt { () throws(SystemError) in
      let exists = try fileSystem.kind(of: path) != nil
      do throws(SystemError) {
        let file = try fileSystem.open(path, exists ? .writing : .creating)
        if try file.byteCount() < StoreHistory.byteCount { try file.allocate(StoreHistory.byteCount) }
        try file.write(history.bytes, at: 0)
        try file.sync()
      } catch {
        guard error.isNoSpace else { throw error }
        if try fileSystem.kind(of: path) != nil { try fileSystem.remove(path) }
        return try fileSystem.syncFolder(folder)
      }
      if !exists { try fileSystem.syncFolder(folder) }
    }
  }

  private func attempt<Result>(_ body: () throws(SystemError) -> Result) throws(DataDirectoryError) -> Result {
    do throws(SystemError) { return try body() } catch { throw .system(path: path, error) }
  }
}
