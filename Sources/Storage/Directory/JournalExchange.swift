import Platform

/// The state that the commit thread and the settling thread of a directory store exchange. Both hold its lock only
/// briefly. Whatever is for the commit thread wakes it.
final class JournalExchange: Sendable {
  /// How far the commit thread has come.
  struct Progress {
    /// The journals that it has left and whose frames the settling thread has not read, with their ends.
    fileprivate(set) var finished: [(number: Int, end: Int)] = []
    /// The journal that it appends to; nil if there is none.
    fileprivate(set) var current: (number: Int, end: Int)?
    /// The position after the last frame.
    fileprivate(set) var position: UInt64
    /// The time of the last append, in milliseconds.
    fileprivate(set) var lastAppend: UInt64 = 0
  }

  /// What the settling thread has for the commit thread.
  enum Answer {
    case journal(JournalFile)
    /// The disk is full.
    case noSpace
  }

  private struct State {
    var progress: Progress
    var synced: UInt64
    /// The size of the journal that the commit thread wants next; nil if it wants none.
    var requestedByteCount: Int?
    var answer: Answer?
    /// Whether there is a journal that the commit thread has not started.
    var hasNextJournal = false
    /// A journal that the commit thread should leave if it ends there, because all of its entries have their files.
    var settled: (number: Int, end: Int)?
    var failure: EngineError?
    /// What wakes the commit thread.
    weak var context: (any MaintenanceContext)?
    var figures: [(name: String, value: UInt64)] = []
  }

  private let state: Lock<State>
  private let syncedPosition: SyncedPosition?

  /// - Parameters:
  ///   - position: The position after the last frame, before which everything is on disk.
  ///   - syncedPosition: Where that is noted for the next start.
  init(_ current: JournalFile?, position: UInt64, notingIn syncedPosition: SyncedPosition? = nil) {
    self.syncedPosition = syncedPosition
    syncedPosition?.note(position)
    var progress = Progress(position: position)
    progress.current = current.map { ($0.number, $0.end) }
    state = Lock(State(progress: progress, synced: position))
  }

  // MARK: From the commit thread

  func didAppend(to end: Int, position: UInt64) {
    let now = monotonicMilliseconds()
    state.withLock { state in
      state.progress.current?.end = end
      (state.progress.position, state.progress.lastAppend) = (position, now)
    }
  }

  /// Records that the commit thread continues in that journal.
  func didStart(_ number: Int) {
    state.withLock { state in
      if let current = state.progress.current { state.progress.finished.append(current) }
      (state.progress.current, state.settled, state.hasNextJournal) = ((number, Journal.start), nil, false)
    }
  }

  /// Asks for a journal of at least that size.
  func request(byteCount: Int) {
    state.withLock { state in
      (state.requestedByteCount, state.answer) = (max(byteCount, state.requestedByteCount ?? 0), nil)
    }
  }

  /// Sets what wakes the commit thread. It looks for results after this, because there may be some already.
  func setContext(_ context: any MaintenanceContext) { state.withLock { $0.context = context } }

  func takeAnswer() -> Answer? {
    state.withLock { state in
      defer { state.answer = nil }
      return state.answer
    }
  }

  /// Whether a journal was asked for, or was made and not taken yet.
  var isJournalComing: Bool { state.withLock { $0.requestedByteCount != nil || $0.answer != nil } }

  /// Takes the number and the end of a journal that the commit thread should leave if it still ends there.
  func takeSettled() -> (number: Int, end: Int)? {
    state.withLock { state in
      defer { state.settled = nil }
      return state.settled
    }
  }

  var failure: EngineError? { state.withLock { $0.failure } }

  // MARK: From the settling thread

  var progress: Progress { state.withLock { $0.progress } }

  var requestedByteCount: Int? { state.withLock { $0.requestedByteCount } }

  func answer(_ answer: Answer) {
    tellCommitThread { state in
      (state.answer, state.requestedByteCount) = (answer, nil)
      if case .journal = answer { state.hasNextJournal = true }
    }
  }

  private func tellCommitThread(_ change: (inout sending State) -> Void) {
    let context = state.withLock { state in
      change(&state)
      return state.context
    }
    context?.wake()
  }

  /// Forgets a journal that the commit thread has left, because the settling thread has read it.
  func didRead(_ number: Int) { state.withLock { $0.progress.finished.removeAll { $0.number == number } } }

  func didSettle(_ number: Int, endingAt end: Int) { tellCommitThread { $0.settled = (number, end) } }

  var hasNextJournal: Bool { state.withLock { $0.hasNextJournal } }

  /// Whether there is anything that the commit thread has not taken yet.
  var hasResult: Bool { state.withLock { $0.answer != nil || $0.settled != nil } }

  // MARK: From both

  /// Ends the work of both threads. The first error counts.
  func fail(_ error: EngineError) { tellCommitThread { $0.failure = $0.failure ?? error } }

  /// The position before which everything is on disk.
  var synced: UInt64 { state.withLock { $0.synced } }

  func didSync(to position: UInt64) {
    syncedPosition?.note(position)
    state.withLock { $0.synced = max($0.synced, position) }
  }

  var figures: [(name: String, value: UInt64)] {
    get { state.withLock { state in state.figures } }
    set { state.withLock { $0.figures = newValue } }
  }
}
