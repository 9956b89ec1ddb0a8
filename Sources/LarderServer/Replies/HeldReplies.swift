import Storage
import Wire

/// Replies of one connection that are held back until commits are durable, in the order in which they were made.
///
/// No client learns of anything that a crash can undo. Replies that reveal nothing themselves wait behind those that
/// do, so that replies keep their order. If a store's files fail, what its replies would reveal is replaced by errors.
/// Owned by a `Connection`.
struct HeldReplies: ~Copyable {
  private var bytes = ByteBuffer()
  /// Each commit, with the size of the replies that wait for it and for the commits before it.
  private var waits: [(commit: RequiredCommit, byteCount: Int)] = []

  /// The size of the replies, in bytes.
  var count: Int { bytes.count }
  var isEmpty: Bool { waits.isEmpty }

  /// Moves replies behind all that wait. If they require no commit themselves, they wait for what is before them.
  mutating func hold(_ replies: inout ReplyBuffer) {
    if !replies.isEmpty {
      replies.copyAttachedValues()
      replies.bytes.withSpan { bytes.append($0) }
      var start = 0
      for commit in replies.requiredCommits {
        // A frame that waits for its values has been removed.
        let end = max(start, min(commit.end, replies.bytes.count))
        waits.append((commit, end - start))
        start = end
      }
      waits[waits.count - 1].byteCount += replies.bytes.count - start
      replies.bytes.removeAll()
    }
    replies.clearRequiredCommits()
  }

  /// Moves the replies that need not wait any more to `replies`.
  /// - Parameter waiter: what is notified when more of them need not wait.
  /// - Returns: the ids of replies that became errors.
  mutating func release(into replies: inout ReplyBuffer, notifying waiter: any DurabilityWaiter) -> [UInt32] {
    var failedIDs: [UInt32] = []
    repeat {
      releaseReady(into: &replies.bytes, &failedIDs)
    } while waits.first.map { !$0.commit.wait(notifying: waiter) } ?? false
    return failedIDs
  }

  private mutating func releaseReady(into output: inout ByteBuffer, _ failedIDs: inout [UInt32]) {
    var releasedCount = 0
    while releasedCount < waits.count, waits[releasedCount].commit.isSettled {
      let (commit, byteCount) = waits[releasedCount]
      bytes.withSpan { bytes in
        let bytes = bytes.extracting(0..<byteCount)
        if let failure = commit.failure {
          Self.appendErrors(for: bytes, failure, into: &output, &failedIDs)
        } else {
          output.append(bytes)
        }
      }
      bytes.consume(byteCount)
      releasedCount += 1
    }
    waits.removeFirst(releasedCount)
    if waits.isEmpty { bytes.releaseStorage() }
  }

  /// Replaces each reply that reveals entries by an error, because whether its request took effect can't be known.
  private static func appendErrors(
    for frames: RawSpan, _ failure: StorageError, into output: inout ByteBuffer, _ failedIDs: inout [UInt32]
  ) {
    var position = 0
    while case .frame(let header) = FrameScan(frames, at: position, maxLength: .max) {
      if header.id == 0 || !revealsEntries(header) {
        output.append(frames.extracting(position..<position + header.frameSize))
      } else if !failedIDs.contains(header.id) {
        output.appendError(.failed, id: header.id, message: "\(failure)")
        failedIDs.append(header.id)
      }
      position += header.frameSize
    }
  }

  /// Whether a reply reveals the state of entries. That an entry is absent reveals something, too.
  private static func revealsEntries(_ header: FrameHeader) -> Bool {
    header.kind == Outcome.done.rawValue
      || [ErrorCode.notFound, .conditionFailed].contains { $0.rawValue == header.detail }
  }
}

/// A commit that must be durable before a reply is sent.
struct RequiredCommit {
  private let commitWriter: CommitWriter
  private var revision: UInt64
  /// The end of the replies that require it, in bytes, with attached values.
  private(set) var end: Int

  init(_ revision: UInt64, _ commitWriter: CommitWriter, end: Int) {
    self.commitWriter = commitWriter
    self.revision = revision
    self.end = end
  }

  /// Includes another commit of the same store.
  /// - Returns: false, and changes nothing, if the other commit is of another store.
  mutating func include(_ revision: UInt64, _ commitWriter: CommitWriter, end: Int) -> Bool {
    guard self.commitWriter === commitWriter else { return false }
    self.revision = max(self.revision, revision)
    self.end = end
    return true
  }

  /// Whether the replies need not wait any more: the commit is durable, or it never will be.
  var isSettled: Bool { commitWriter.isDurable(revision) || commitWriter.failure != nil }

  /// Why the commit will never be durable; nil if it is.
  var failure: StorageError? { commitWriter.isDurable(revision) ? nil : commitWriter.failure }

  /// Asks to be notified when the commit is settled.
  /// - Returns: false if it is settled already.
  func wait(notifying waiter: any DurabilityWaiter) -> Bool { commitWriter.wait(for: revision, waiter) }
}
