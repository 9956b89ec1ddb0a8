import Storage
import Wire

/// What a request asks of the entries of a store. It has no encoding: keys, values and lists are ranges of the bytes that
/// are passed along with it.
enum Command {
  /// - Parameter key: The range of the key.
  case get(key: Range<Int>)
  case getRange(RangeRequest)
  /// The list is all bytes.
  case getMany(KeyList)
  case put(WriteRecord)
  /// The writes begin at byte 4.
  case putMany(count: Int)
  case delete(key: Range<Int>, EntryCondition)
  /// The list is all bytes.
  case deleteMany(KeyList)
  case deleteAll
  case count(prefix: Range<Int>)
  case scan(ScanRequest, isPage: Bool)
  case watch(WatchRequest)
  /// The operations begin at byte 4.
  case apply(count: Int)
  case putUpload(UploadPut)

  var operation: Operation {
    switch self {
    case .get: .get
    case .getRange: .getRange
    case .getMany: .getMany
    case .put: .put
    case .putMany: .putMany
    case .delete: .delete
    case .deleteMany: .deleteMany
    case .deleteAll: .deleteAll
    case .count: .count
    case .scan(_, let isPage): isPage ? .page : .all
    case .watch: .watch
    case .apply: .apply
    case .putUpload: .uploadPut
    }
  }

  /// Whether the reply may be a stream.
  @inline(__always)
  var mayStream: Bool {
    switch self {
    case .getMany, .scan, .watch: true
    default: false
    }
  }
}

/// What a command on entries has come to, unless it takes a `Detour`. It is trivial, because every small request has one.
enum CommandOutcome {
  /// A revision or a count.
  case number(UInt64)
  case entry(EntryView)
  /// A range of an entry's value.
  case range(EntryView, Range<Int>)
  /// There is no entry.
  case absent

  /// The error of the reply; nil if it has none.
  @inline(__always)
  var errorCode: ErrorCode? { if case .absent = self { .notFound } else { nil } }
}

/// The outcome of a command, and the newest commit that it reveals; 0 for none.
struct Execution {
  let outcome: CommandOutcome
  let shownRevision: UInt64

  @inline(__always)
  init(_ outcome: CommandOutcome, revealing shownRevision: UInt64) {
    (self.outcome, self.shownRevision) = (outcome, shownRevision)
  }
}

/// What happens instead of an outcome.
enum Detour: Error {
  case failure(CommandFailure)
  /// A stream sends entries.
  /// - Parameter revealing: The newest commit that their number and order reveal.
  case entries(EntryCursor, revealing: UInt64)
  /// A stream sends changes.
  /// - Parameter revealing: The newest commit that its beginning reveals.
  case changes(Watch, WatchStart, revealing: UInt64)
  /// Nothing was done, and the command must be executed again soon: many expired entries are still to be removed.
  case deferred
  /// Nothing was done, because the store's commit writer must make room first.
  case needsSpace
  /// Nothing was done, because a large commit to the store must end first.
  case needsCommit
  /// Nothing was done, because a value must be read from the disk first.
  case needsValue(SeparatedValue)
  /// Nothing was done, because the write takes too long for the store's lock: a `WriteJob` must make it.
  case needsWriteJob
  /// Nothing was done, because updates may take too long for the store's lock: a `DocumentJob` must make them.
  case needsDocumentJob

  static func failure(_ code: ErrorCode, _ message: String = "", revealing revision: UInt64 = 0) -> Detour {
    .failure(CommandFailure(code, message, shownRevision: revision))
  }

  /// What an error of a store means.
  /// - Parameter revision: The store's revision.
  init(_ error: StorageError, revealing revision: UInt64) {
    switch error {
    case .commitPending: self = .needsCommit
    case .diskTooSlow: self = .needsSpace
    default: self = .failure(CommandFailure(error, shownRevision: revision))
    }
  }
}

/// What has come of a request that took longer than its wakeup.
enum LateOutcome {
  case done
  /// A revision or a count.
  case number(UInt64)
  case changed(MatchingChanges)
  case ensured(EnsuredIndex)
  case failure(CommandFailure)

  /// The error of the reply; nil if it has none.
  var errorCode: ErrorCode? { if case .failure(let failure) = self { failure.code } else { nil } }
}

/// Why a command was not executed, or why its outcome is not known.
struct CommandFailure: Error {
  let code: ErrorCode
  let message: String
  /// The newest commit that the message reveals, which must be durable before it is sent; 0 for none.
  let shownRevision: UInt64
  /// What is known about the request.
  let outcome: Outcome
  /// Whether the server has yet to learn which stores there are.
  let isLoading: Bool

  /// - Parameter outcome: What is known about the request; nil for what is known after most errors with the code.
  init(
    _ code: ErrorCode, outcome: Outcome? = nil, _ message: String = "", shownRevision: UInt64 = 0,
    isLoading: Bool = false
  ) {
    self.isLoading = isLoading
    self.code = code
    self.message = message
    self.shownRevision = shownRevision
    self.outcome = outcome ?? code.outcome
  }

  /// Why a reply can't be sent that waited for a commit. Whether the request took effect can't be known.
  init(ofCommit error: StorageError) {
    let isLost = if case .servedElsewhere = error { true } else { false }
    self.init(isLost ? .notLeader : .failed, outcome: .unknown, "\(error)")
  }

  /// Returns why a request on a store fails that this server no longer serves.
  /// - Parameter error: The error of the store's map.
  static func removed(_ store: Store, _ error: StorageError) -> CommandFailure {
    error == .storeDropped
      ? CommandFailure(.storeUnknown, "store \(store.name) was dropped") : CommandFailure(error)
  }

  /// Returns why a request on a store fails that this server no longer serves. Takes the store's lock.
  static func removed(_ store: Store) -> CommandFailure { removed(store, store.access { $0.removalError }) }

  static let leaseLost = CommandFailure(
    .notLeader,
    "the server can't be sure that it still serves the store, because the store's database has not responded in time; try "
      + "again later")

  static let tooOld = CommandFailure(
    .notLeader, "what this server has of the store is older than the request permits; ask another server")

  static let tooManyOfPrincipal = CommandFailure(
    .tooManyConnections,
    "the principal has the maximum number of connections already (limits.client-connections); close some")

  /// - Parameter shownRevision: The store's revision, if the error reveals what is in the store.
  init(_ error: StorageError, shownRevision: UInt64 = 0) {
    var message = "\(error)"
    var isLoading = false
    if case .servedElsewhere(_, let elsewhere) = error {
      isLoading = elsewhere.isUnknown
      // The last line is for programs.
      if let address = elsewhere.address { message += "\n\(address)" }
    }
    self.init(
      ErrorCode(error), message, shownRevision: error.revealsContents ? shownRevision : 0, isLoading: isLoading)
  }
}
