import Dispatch
import Platform
import Replication

/// Appends the commits of all stores of a database on a few connections. Those that wait for a connection are appended
/// together, in one transaction, so that they share its synchronization with the disk and the standby.
final class CommitAppender: Sendable {
  private static let insert = Statement(
    "larder_append",
    """
    INSERT INTO larder.commit SELECT $1::int8, $2::int8, $3::int8, $4::int8, $5::bytea WHERE EXISTS \
    (SELECT FROM larder.commit WHERE store = $1::int8 AND position = $2::int8 - 1 AND epoch = $3::int8) \
    ON CONFLICT DO NOTHING
    """)

  /// The size of the records of a transaction from which on no more are added, in bytes.
  private static let maxByteCount = 4 << 20

  /// A commit that waits, with its outcome. Safe because the outcome is written before, and read after, its signal.
  private final class Append: @unchecked Sendable {
    let commit: LogCommit
    let store: StoreID
    var outcome: Result<Bool, SharedLogError> = .failure(.unavailable(""))
    let ended = DispatchSemaphore(value: 0)

    init(_ commit: LogCommit, to store: StoreID) { (self.commit, self.store) = (commit, store) }

    func end(_ outcome: Result<Bool, SharedLogError>) {
      self.outcome = outcome
      ended.signal()
    }
  }

  private struct State {
    var waiting: [Append] = []
    var isEnding = false
  }

  private let queue = Queue()
  private let sessionCount: Int

  /// The commits that wait, apart from the appender, so that its threads end when it is released.
  private final class Queue: Sendable {
    let state = Lock(State())
    let work = DispatchSemaphore(value: 0)
  }

  /// Starts a thread for each session.
  init(_ sessions: [DatabaseSession]) {
    for session in sessions {
      DispatchQueue(label: "larder.append", qos: .userInitiated).async { [queue] in
        while true {
          queue.work.wait()
          if queue.state.withLock({ $0.isEnding }) { return }
          Self.append(Self.takeBatch(of: queue), on: session)
        }
      }
    }
    sessionCount = sessions.count
  }

  deinit {
    queue.state.withLock { $0.isEnding = true }
    for _ in 0..<sessionCount { queue.work.signal() }
  }

  /// Appends a commit, and waits until that has ended.
  /// - Returns: Whether it was appended.
  func append(_ commit: LogCommit, to store: StoreID) throws(SharedLogError) -> Bool {
    let append = Append(commit, to: store)
    queue.state.withLock { $0.waiting.append(append) }
    queue.work.signal()
    append.ended.wait()
    return try append.outcome.get()
  }

  // MARK: The threads

  private static func append(_ batch: [Append], on session: DatabaseSession) {
    guard !batch.isEmpty else { return }
    let outcome = Result { () throws(SharedLogError) in
      try session.run(
        batch.map { append in
          let commit = append.commit
          return (
            insert,
            [
              .integer(append.store), .integer(commit.position), .integer(commit.epoch),
              .integer(Int64(commit.lastRevision)), .bytes(commit.records),
            ]
          )
        })
    }
    for (index, append) in batch.enumerated() { append.end(outcome.map { $0[index].count == 1 }) }
  }

  /// Takes some of the commits that wait, in the order of their stores, so that no two transactions wait for each other.
  private static func takeBatch(of queue: Queue) -> [Append] {
    queue.state.withLock { state in
      var (count, byteCount) = (0, 0)
      while count < state.waiting.count, byteCount < maxByteCount {
        byteCount += state.waiting[count].commit.records.count
        count += 1
      }
      let batch = state.waiting.prefix(count).sorted { $0.store < $1.store }
      state.waiting.removeFirst(count)
      return batch
    }
  }
}
