import Platform
import Storage

/// Reads the entries of a store from the shared log, and verifies them.
struct StoreReader {
  /// How much of a log is read at a time, in bytes.
  private static let readByteCount = 8 << 20
  /// How much of the latest changes is kept for watches that began at other servers, in bytes.
  private static let feedByteCount = 16 << 20

  let log: any SharedLog
  let store: StoreID
  let name: StoreName
  let durability: Durability?
  let values: StoreValues

  /// Reads the newest snapshot, and the commits after it, into an empty map.
  /// - Parameter end: The position of the last commit to read; nil for the last one there is.
  func load(
    upTo end: Int64?, into map: inout EntryMap, at now: ClockReading, progress: (Int, Int) -> Void = { _, _ in }
  ) throws -> LogPlace {
    let snapshot = try log.snapshot(of: store)
    var loader = try RecordLoader(
      at: now, expecting: snapshot?.entryCount ?? 0, keeping: Self.feedByteCount,
      notifiesImmediately: durability != .always, values: values, into: &map)
    let partCount = snapshot?.partCount ?? 0
    if let snapshot {
      for number in 0..<partCount {
        let part = try log.part(number, of: snapshot, in: store)
        try verifying("part \(number) of its snapshot") { () throws(RecordLoadingError) in
          guard !part.isEmpty else { throw .damaged("it is missing") }
          try unsafe part.withRecords { (bytes) throws(RecordLoadingError) in
            try unsafe loader.loadSnapshot(bytes, revision: snapshot.revision, into: &map)
          }
        }
        // The commits are about as much again.
        progress(number + 1, 2 * partCount)
      }
    }
    let first = snapshot?.position ?? 0
    var place = LogPlace(position: first, epoch: 0, snapshotPosition: first)
    while end.map({ place.position < $0 }) ?? true {
      let commits = try log.commits(of: store, from: place.position + 1, upTo: Self.readByteCount)
      for commit in commits where commit.position <= end ?? .max {
        try verifying("its commit \(place.position + 1)") { () throws(RecordLoadingError) in
          guard commit.position == place.position + 1 else { throw .damaged("it is missing") }
          try unsafe commit.records.withRecords { (bytes) throws(RecordLoadingError) in
            try unsafe loader.loadCommit(bytes, at: commit.position, into: &map)
          }
        }
        place.advance(to: commit)
      }
      if commits.isEmpty {
        guard end == nil else { throw missing(place.position + 1) }
        break
      }
      if let end { progress(Int(place.position - first) + partCount, Int(end - first) + 2 * partCount) }
    }
    try verifying("its log") { () throws(RecordLoadingError) in _ = try loader.finish(&map) }
    return place
  }

  /// Reads the commits after a place into the map that has those before it.
  /// - Parameter end: The position of the last commit to read.
  /// - Throws: Also `engineUnavailable` if the log has something else at the place than what was read there.
  func load(after place: inout LogPlace, upTo end: Int64, into map: inout EntryMap, at now: ClockReading) throws {
    while true {
      // With the commit at the place itself, which shows whether it is still there.
      let tails = try log.commits(from: [store: place.position], upTo: Self.readByteCount, provenBy: nil)
      let commits = tails[store]?.commits ?? []
      guard continues(at: place, with: commits) else {
        throw StorageError.engineUnavailable("the database has lost commits that this server has read")
      }
      for commit in commits.dropFirst() where commit.position <= end {
        for location in try replay(commit, after: &place, into: &map, at: now) { map.updateLocation(location) }
      }
      if place.position >= end { return }
      if commits.count == 1 { throw missing(place.position + 1) }
    }
  }

  /// Returns whether the first of some commits is the one that was read last.
  func continues(at place: LogPlace, with commits: [LogCommit]) -> Bool {
    commits.first.map { $0.position == place.position && $0.epoch == place.epoch } ?? false
  }

  /// Makes the changes of the commit after a place.
  /// - Returns: Where its large values are, which are in memory now.
  func replay(
    _ commit: LogCommit, after place: inout LogPlace, into map: inout EntryMap, at now: ClockReading
  ) throws -> [ValueLocation] {
    var locations: [ValueLocation] = []
    try verifying("its commit \(place.position + 1)") { () throws(RecordLoadingError) in
      guard commit.position == place.position + 1 else { throw .damaged("it is missing") }
      locations = try unsafe commit.records.withRecords { (bytes) throws(RecordLoadingError) in
        guard try unsafe map.replay(bytes, at: now) else { return [] }
        return unsafe ValueLocation.all(in: bytes, ofCommitAt: commit.position, in: values)
      }
    }
    place.advance(to: commit)
    return locations
  }

  private func missing(_ position: Int64) -> StorageError {
    .storeDamaged(name, "its commit \(position) is missing in the database")
  }

  private func verifying(_ what: String, _ body: () throws(RecordLoadingError) -> Void) throws {
    do throws(RecordLoadingError) { try body() } catch {
      switch error {
      case .damaged(let reason): throw StorageError.storeDamaged(name, "\(what) is damaged: \(reason)")
      case .noMemory(let error): throw error
      }
    }
  }
}

extension LogPlace {
  fileprivate mutating func advance(to commit: LogCommit) {
    (position, epoch) = (commit.position, commit.epoch)
    byteCount += commit.records.count
  }
}

extension [UInt8] {
  func withRecords<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let bytes = unsafe span.bytes
    return try unsafe bytes.withUnsafeBytes { (buffer) throws(Failure) in try unsafe body(buffer) }
  }
}
