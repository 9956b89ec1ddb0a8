import Storage
import Wire

/// A reply of several frames that is not finished: `Protocol/wire.md` §5. What it has left to send, from which
/// snapshot, and its credit.
///
/// Owned by its connection. It holds a snapshot, or a watch, of its store until `end`, which must be called when it is
/// dropped.
struct ReplyStream {
  let id: UInt32
  let store: Store
  /// The view of the store that the entries come from; nil for a watch.
  let snapshot: Snapshot?
  /// While it waits for a job, its share of the server's jobs; afterward, its share of the memory for what was found. nil
  /// if there is no job, or what it found needs little memory.
  private(set) var share: Share?
  /// The operation of the request.
  let operation: Operation
  var remainder: Remainder
  /// The number of bytes that the client still accepts. Nothing is sent unless it is positive.
  private(set) var credit: Int
  /// When the last frame was sent, in milliseconds.
  private(set) var lastSent: UInt64
  /// The document that was read for the next frame, and its handle.
  var readDocument: (handle: UInt32, read: ValueRead)?

  /// The size of a frame's body, in bytes, at which a new frame begins.
  static let maxFrameBody = 65_536
  /// The largest credit that a stream can have.
  static let maxCredit = Int(Int32.max)

  init(
    id: UInt32, operation: Operation, store: Store, snapshot: Snapshot?, remainder: Remainder, share: Share? = nil,
    credit: Int, now: UInt64
  ) {
    self.id = id
    self.operation = operation
    self.store = store
    self.snapshot = snapshot
    self.share = share
    self.remainder = remainder
    self.credit = credit
    lastSent = now
  }

  /// What is left to send.
  enum Remainder {
    case scan(Scan)
    /// The entries at these handles, 0 for absent ones, from `next` on.
    case entries([UInt32], next: Int)
    /// The entries with these keys.
    case keys(RemainingKeys)
    /// The changes of the store, without an end.
    case changes(Watch)
    /// What a job has still to find out. A change has one frame, which needs no credit.
    case running(DocumentJob)
    /// What a find has found, from `next` on. The number of documents stands for the result after them.
    case found(FoundDocuments, next: Int)
    /// What an aggregation has computed, likewise.
    case rows(AggregatedRows, next: Int)

    /// The number of keys that it keeps in memory.
    var keyCount: Int {
      switch self {
      case .scan, .changes, .running, .found, .rows: 0
      case .entries(let handles, _): handles.count
      case .keys(let keys): keys.list.remaining
      }
    }

    /// The size of the keys that are not looked up, in bytes.
    var keptKeyByteCount: Int { if case .keys(let keys) = self { keys.bytes.count } else { 0 } }

    var isEmpty: Bool {
      switch self {
      case .scan(let scan): scan.ranks.isEmpty
      case .entries(let handles, let next): next == handles.count
      case .keys(let keys): keys.list.remaining == 0
      case .changes, .running: false
      case .found(let found, let next): next > found.handles.count
      case .rows(let rows, let next): next > rows.rows.count
      }
    }
  }

  /// The keys of a get-many that are not looked up yet. Looking them up frame by frame delays no other client.
  struct RemainingKeys {
    /// A key list, as in a request.
    let bytes: [UInt8]
    var list: KeyList

    /// - Parameter offset: Where the next key is in the body of the request.
    init(_ list: KeyList, of body: RawSpan, at offset: Int) {
      var buffer = ByteBuffer()
      buffer.append(UInt32(list.remaining))
      buffer.append(body.extracting(offset..<body.byteCount))
      let bytes = buffer.toArray()
      guard let rest = unsafe KeyList(bytes.span.bytes) else { preconditionFailure("the list has a count") }
      (self.bytes, self.list) = (bytes, rest)
    }
  }

  /// The entries of a range of ranks, from the last one backward if `isReverse`.
  struct Scan {
    private(set) var ranks: Range<Int>
    let isReverse: Bool
    let isKeysOnly: Bool

    /// Removes the ranks that are visited first.
    mutating func dropFirst(_ count: Int) {
      ranks = isReverse ? ranks.lowerBound..<ranks.upperBound - count : ranks.lowerBound + count..<ranks.upperBound
    }
  }

  private var watch: Watch? { if case .changes(let watch) = remainder { watch } else { nil } }
  var isWatch: Bool { watch != nil }
  /// The job that it waits for; nil if there is none, or it has ended.
  var runningJob: DocumentJob? { if case .running(let job) = remainder { job } else { nil } }
  /// Whether it shows commits that are not durable, if its store promises that replies don't.
  var showsUndurableCommits: Bool {
    guard let snapshot, let commitWriter = store.commitWriter else { return false }
    return snapshot.revision > commitWriter.visibleRevision
  }
  /// Whether it waits for a job that changes entries.
  var changesEntries: Bool { runningJob?.changesEntries ?? false }
  /// Whether its frames take longer to make than they are long: those with fields of documents, or whose keys are looked
  /// up in a snapshot.
  var isSlow: Bool {
    switch remainder {
    case .found(let found, _): found.projection != nil
    case .keys: true
    default: false
    }
  }
  /// Whether the next frame can be made now.
  var isReady: Bool { credit > 0 && watch?.isCaughtUp != true && runningJob == nil }
  /// Whether it is a watch that has reported every change there is.
  var isAtEnd: Bool { watch?.isAtEnd == true }

  /// Takes the size of a frame off the credit.
  mutating func didSend(_ byteCount: Int, now: UInt64) {
    credit -= byteCount
    lastSent = now
  }

  /// Begins to wait for credit anew, because the client could not give it.
  mutating func restartTimeout(now: UInt64) { lastSent = now }

  mutating func addCredit(_ byteCount: Int) { credit = min(credit + byteCount, Self.maxCredit) }

  /// Gives back its share of the server's jobs, because its job has ended, in exchange for a share of the memory for what
  /// was found.
  mutating func exchangeShare(for share: Share?) {
    self.share?.release()
    self.share = share
  }

  /// Cancels the job that it waits for, if there is one.
  /// - Returns: false if the job has changed documents, which its client must be told.
  func tryCancel() -> Bool { runningJob?.cancel() ?? true }

  /// Makes a watch look for changes again.
  mutating func resumeWatch() {
    guard case .changes(var watch) = remainder else { return }
    watch.isCaughtUp = false
    remainder = .changes(watch)
  }

  /// Releases the snapshot or the watch, and cancels a job. Locks the store, so that a canceled job changes nothing from
  /// then on.
  func end() {
    runningJob?.cancel()
    share?.release()
    store.access { map in
      if let snapshot { map.end(snapshot) } else { map.endWatch() }
    }
  }
}

/// How far a watch has come: `Protocol/wire.md` §6.5. Owned by its stream.
struct Watch {
  /// Only changes of keys that begin with it are reported.
  private let prefix: [UInt8]
  let isKeysOnly: Bool
  /// The position of the next change in the store's feed.
  var position: UInt64
  /// The newest revision up to which everything has been reported.
  var throughRevision: UInt64
  /// The position at which the last frame was sent.
  var reportedPosition: UInt64
  /// The store's revision when the watch began, until everything up to it has been reported.
  var startRevision: UInt64?
  /// Whether everything that may be reported has been, so that it waits for more.
  var isCaughtUp = false
  /// Whether the feed has nothing more, not even changes that are not durable yet.
  var isAtEnd = false

  init(prefix: [UInt8], isKeysOnly: Bool, position: UInt64, throughRevision: UInt64, startRevision: UInt64) {
    self.prefix = prefix
    self.isKeysOnly = isKeysOnly
    self.position = position
    self.throughRevision = throughRevision
    self.startRevision = throughRevision < startRevision ? startRevision : nil
    reportedPosition = position
  }

  /// Whether a change is to be reported.
  func matches(_ change: ChangeView) -> Bool {
    if prefix.isEmpty || change.kind == .deleteAll { return true }
    return unsafe change.key.starts(with: prefix)
  }
}
