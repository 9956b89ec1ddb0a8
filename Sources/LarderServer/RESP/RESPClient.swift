import Storage
import Wire

/// What a connection keeps for a client that speaks RESP. Owned by one `Connection`, and used by its worker.
final class RESPClient: @unchecked Sendable {
  var version = RESPVersion.two
  /// The selected database.
  var database = 0
  var name = ""
  var libraryName = ""
  var libraryVersion = ""
  /// The transaction that has begun; nil if there is none.
  var transaction: RESPTransaction? { didSet { isInTransaction = transaction != nil } }
  private(set) var isInTransaction = false
  var watchedKeys: [RESPWatchedKey] = []
  /// The keys that a KEYS command has found so far; nil if none is at work.
  private var keySearch: RESPKeySearch?
  /// For values that are computed.
  var scratch = ByteBuffer()
  /// The memory for computed values that is kept for the next request, in bytes.
  private static let maxKeptBytes = 4 << 10

  /// Frees the memory for computed values if it is large.
  @inline(__always)
  func releaseLargeScratch() {
    if scratch.capacity > Self.maxKeptBytes { scratch.releaseStorage() }
  }

  /// Forgets everything that a client has said.
  func reset() {
    (version, database, name) = (.two, 0, "")
    discardTransaction()
  }

  func discardTransaction() {
    transaction = nil
    watchedKeys = []
  }

  /// Removes and returns the search for keys that is at work, or a new one.
  func takeKeySearch() -> RESPKeySearch { keySearch.take() ?? RESPKeySearch() }

  func keepKeySearch(_ search: consuming RESPKeySearch) { keySearch = consume search }

  /// Lets EXEC fail, because a command was refused.
  func abortTransaction() { transaction?.isAborted = true }
}

extension Connection {
  /// What is kept for a client that speaks RESP.
  var respClient: RESPClient {
    mutating get {
      if let clientState { return unsafe unsafeDowncast(clientState, to: RESPClient.self) }
      let client = RESPClient()
      clientState = client
      return client
    }
  }
}

/// The commands between MULTI and EXEC.
struct RESPTransaction {
  /// The requests, one after the other.
  private(set) var requests: [UInt8] = []
  private(set) var count = 0
  /// The number of requests that change entries.
  private(set) var writeCount = 0
  /// Whether a command was refused.
  var isAborted = false

  /// Adds a request.
  /// - Returns: False if there is no room for it.
  mutating func add(_ request: RawSpan, isWrite: Bool, maxByteCount: Int) -> Bool {
    guard requests.count + request.byteCount <= maxByteCount else { return false }
    unsafe request.withUnsafeBytes { unsafe requests.append(contentsOf: $0) }
    count += 1
    if isWrite { writeCount += 1 }
    return true
  }
}

/// A key that must not change before the transaction.
struct RESPWatchedKey {
  let store: Store
  let key: [UInt8]
  /// The revision of its entry; nil if there is none.
  let revision: UInt64?
}

/// A search for keys that match a pattern, which is made in slices.
struct RESPKeySearch: ~Copyable {
  /// The keys, as parts of the reply.
  var found = ByteBuffer()
  var count = 0
  /// The last key that was looked at; empty at the beginning.
  var last: [UInt8] = []
}
