import Storage
import Wire

/// A reply of several parts that is not finished: what it has left to send, from which snapshot, and its credit.
///
/// Owned by its connection. It holds a snapshot, or a watch, of its store until `end`, which must be called when it is
/// dropped.
struct ReplyStream {
  /// The tag of the request.
  let tag: UInt32
  let store: Store
  /// The view of the store that the entries come from; nil for a watch.
  let snapshot: Snapshot?
  /// While it waits for a job, its share of the server's jobs; afterward, its share of the memory for what was found. nil
  /// if there is no job, or what it found needs little memory.
  private(set) var share: Share?
  /// The operation of the request.
  let operation: Operation
  /// Whether later requests of the connection wait until it ends.
  let isAwaited: Bool
  var remainder: Remainder
  /// The number of bytes that the client still accepts. Nothing is sent unless it is positive.
  private(set) var credit: Int
  /// Whether a part of it has been appended.
  private(set) var hasBegun: Bool
  /// When the last part was sent, in milliseconds.
  private(set) var lastSent: UInt64
  /// The document that was read for the next part, and its handle.
  var readDocument: (handle: UInt32, read: ValueRead)?

  /// The largest credit that a stream can have.
  static let maxCredit = Int(Int32.max)

  init(
    tag: UInt32, operation: Operation, isAwaited: Bool, store: Store, snapshot: Snapshot?, remainder: Remainder,
    share: Share? = nil, credit: Int, now: UInt64
  ) {
    self.tag = tag
    self.operation = operation
    self.isAwaited = isAwaited
    self.store = store
    self.snapshot = snapshot
    self.share = share
    self.remainder = remainder
    self.credit = credit
    lastSent = now
    // The first part of a stream that waits for no job is made before the stream is opened.
    hasBegun =
      switch remainder {
      case .entries, .changes: true
      case .running, .found, .rows: false
      }
  }

  /// What is left to send.
  enum Remainder {
    case entries(EntryCursor)
    /// The changes of the store, without an end.
    case changes(Watch)
    /// What a job has still to find out. A change has one reply, which needs no credit.
    case running(DocumentJob)
    /// What a find has found, from `next` on. The number of documents stands for the result after them.
    case found(FoundDocuments, next: Int)
    /// What an aggregation has computed, likewise.
    case rows(AggregatedRows, next: Int)

    /// The cursor of a stream of entries; nil for any other stream.
    var cursor: EntryCursor? { if case .entries(let cursor) = self { cursor } else { nil } }

    var isEmpty: Bool {
      switch self {
      case .entries(let cursor): cursor.isEmpty
      case .changes, .running: false
      case .found(let found, let next): next > found.handles.count
      case .rows(let rows, let next): next > rows.rows.count
      }
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
  /// Whether its parts take longer to make than they are long: those with fields of documents, or whose keys are looked
  /// up in a snapshot.
  var isSlow: Bool {
    switch remainder {
    case .found(let found, _): found.projection != nil
    case .entries(let cursor): cursor.isSlow
    default: false
    }
  }
  /// Whether the next part can be made now.
  var isReady: Bool { credit > 0 && watch?.isCaughtUp != true && runningJob == nil }
  /// Whether it is a watch that has reported every change there is.
  var isAtEnd: Bool { watch?.isAtEnd == true }

  /// Whether rights permit it to go on.
  /// - Parameter former: The rights that have permitted it so far.
  func isPermitted(by rights: StoreRights, former: StoreRights) -> Bool {
    if rights.permit(operation.descriptor) { return true }
    guard case .keys = operation.descriptor.scope else { return false }
    return watch?.isPermitted(by: rights) ?? rights.includes(former)
  }

  /// Takes the size of a part off the credit.
  mutating func didSend(_ byteCount: Int, now: UInt64) {
    credit -= byteCount
    hasBegun = true
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
  /// The position at which the last part was sent.
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

  func isPermitted(by rights: StoreRights) -> Bool { unsafe rights.right(to: prefix.span.bytes) >= .read }

  /// Whether a change is to be reported.
  func matches(_ change: ChangeView) -> Bool {
    if change.kind == .expiry { return false }
    if prefix.isEmpty || change.kind == .deleteAll { return true }
    return unsafe change.key.starts(with: prefix)
  }
}
