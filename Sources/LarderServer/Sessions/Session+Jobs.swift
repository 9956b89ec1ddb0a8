// A find on the server, unless a plan is kept for its shape (`Session+KeptPlans`):
//
// 1. `Session+Jobs` takes a snapshot, makes a job (`DocumentJob`) and opens a reply stream (`ReplyStream`) that waits
//    for it. From here on, credit, cancellation, timeouts and the limit on requests in flight are those of every reply
//    stream.
// 2. The job asks `Planner` for the plan with the least work. For each index that helps, the planner turns conditions
//    into ranges of keys (`Condition+Ranges`) and counts the keys in them, which takes O(log *n*) in a counted tree.
// 3. `DocumentSearch` follows the plan: through ranges of an index (`EntryMap+Indexes`), through all entries, or to
//    documents that several indexes have. If the ranges are exactly the result, it counts and skips by arithmetic. An
//    aggregation that needs no more than counts and the values of an index's first fields looks at one document of each
//    group: the ranks of the group's keys say how many there are, and where the next group begins.
// 4. `JobRunner` gives each job a turn of about a millisecond, again and again. A turn can end in the middle of a
//    document: evaluation spends units of a `WorkBudget` for all that it looks at, and asks the job for more, which
//    then waits for its next turn, or ends at its limit. In the job's turns, `DocumentBatch` gathers a few documents
//    under the store's lock, and reads large values in files. The query is evaluated without the lock, on the documents
//    where they are, so what a selector costs delays no other client.
// 5. `FindTask` keeps the handles of the documents that are on the page, in the core that all finders share; see the
//    next walkthrough.
// 6. The job goes to the worker through `Mailbox`. Frame by frame, the worker copies the documents, or fields of them,
//    from the snapshot to the replies, and at the end the result. They are held until the snapshot is durable.

import Documents
import Storage
import Wire

/// Requests on all documents of a store that match: `Protocol/wire.md` §6.7 to §6.9, and applies with many updates.
///
/// A request opens a reply stream that waits for a `DocumentJob`. Once the job has found the documents' handles, the
/// stream of a find sends the documents like any other entries.
extension Session {
  /// Starts a find, an aggregation or a change. No store is locked.
  func startJob(
    _ documentRequest: DocumentRequest, _ request: C.Request, _ body: RawSpan, of connection: inout Connection,
    _ store: Store, on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    if let end = rejectStream(request.tag, of: &connection, on: &executor, into: &replies) { return end }
    if case .find(let find) = documentRequest,
      let end = replyByKeptPlan(find, request, body, of: &connection, store, on: &executor, into: &replies)
    {
      return end
    }
    let now = executor.now
    if store.access({ $0.expireBriefly(now: now) }) { return .deferred }
    if executor.server.memory.isExhausted {
      return reply(.exhaustedMemory, to: request, store, into: &replies)
    }
    let snapshot = store.access { map in map.isDropped ? nil : map.snapshot(now: now) }
    guard let snapshot else {
      return reply(.removed(store), to: request, store, into: &replies)
    }
    let job = DocumentJob(
      documentRequest, body, byteCount: request.size, for: connection.token, connection.sharer, of: store,
      in: snapshot, now: now, limits: executor.limits, executor.mailbox)
    let isPending = !job.runBriefly()
    let share = isPending ? executor.openPlace(for: job, runningCount: connection.runningJobCount) : nil
    var stream = ReplyStream(
      tag: request.tag, operation: documentRequest.operation, isAwaited: C.isOrdered || job.changesEntries,
      store: store, snapshot: snapshot,
      remainder: .running(job), share: share,
      credit: documentRequest.operation == .changeMatching ? ReplyStream.maxCredit : connection.credit, now: now)
    if isPending, share == nil {
      stream.end()
      return reply(.tooManyJobs(executor.limits), to: request, store, into: &replies)
    }
    if !isPending {
      executor.recordWork(of: job)
      if case .find(let find) = documentRequest { executor.keepPlan(of: job, find, body) }
      switch job.outcome {
      case .success(.found(let found)): stream.remainder = .found(found, next: 0)
      case .success(.changed(let changes, let revision)):
        stream.end()
        let start = replies.count
        append(.changed(changes), to: request.tag, into: &replies)
        if revision > 0, let commitWriter = store.commitWriter {
          replies.require(revision, commitWriter, of: request.tag, from: start, reveals: true)
        }
        return .done
      case .failure(let failure):
        stream.end()
        return reply(failure, to: request, store, into: &replies)
      default: preconditionFailure("only finds and changes run at once")
      }
    }
    connection.open(stream)
    return isPending ? .pending : .done
  }

  /// Starts an apply with updates, whose body is valid. Its store is locked.
  func startApply(
    _ request: C.Request, _ body: RawSpan, of connection: inout Connection, on store: Store, _ map: inout EntryMap,
    executor: inout Executor, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    if let end = rejectStream(request.tag, of: &connection, on: &executor, into: &replies) { return end }
    if executor.server.memory.isExhausted {
      return reply(.exhaustedMemory, to: request, store, into: &replies)
    }
    let snapshot = map.snapshot(now: executor.now)
    let job = DocumentJob(
      .apply, body, byteCount: request.size, for: connection.token, connection.sharer, of: store, in: snapshot,
      now: executor.now, limits: executor.limits, executor.mailbox)
    guard let share = executor.openPlace(for: job, runningCount: connection.runningJobCount) else {
      map.end(snapshot)
      return reply(.tooManyJobs(executor.limits), to: request, store, into: &replies)
    }
    connection.open(
      ReplyStream(
        tag: request.tag, operation: .apply, isAwaited: true, store: store, snapshot: snapshot,
        remainder: .running(job), share: share, credit: ReplyStream.maxCredit, now: executor.now))
    return .pending
  }

  // MARK: Results

  func beginReply(
    to job: DocumentJob, of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer
  ) {
    guard let index = connection.streams.firstIndex(where: { $0.runningJob === job }) else { return }
    let outcome: LateOutcome
    var shownRevision: UInt64 = 0
    switch job.outcome {
    case .success(.found(let found)):
      guard keep(.found(found), at: index, of: &connection, on: &executor, into: &replies) else {
        return executor.record(.tooManyRequests, of: job)
      }
      connection.streams[index].remainder = .found(found, next: 0)
      return executor.record(nil, of: job)
    case .success(.rows(let rows)):
      guard keep(.rows(rows), at: index, of: &connection, on: &executor, into: &replies) else {
        return executor.record(.tooManyRequests, of: job)
      }
      connection.streams[index].remainder = .rows(rows, next: 0)
      return executor.record(nil, of: job)
    case .success(.changed(let changes, let revision)): (outcome, shownRevision) = (.changed(changes), revision)
    case .success(.applied(let number, let revision)): (outcome, shownRevision) = (.number(number), revision)
    case .failure(let failure): (outcome, shownRevision) = (.failure(failure), failure.shownRevision)
    case nil: preconditionFailure("a job that was posted has an outcome")
    }
    let start = replies.count
    let tag = connection.endStream(at: index)
    append(outcome, to: tag, into: &replies)
    let code = outcome.errorCode
    if shownRevision > 0, let commitWriter = job.store.commitWriter {
      replies.require(shownRevision, commitWriter, of: tag, from: start, reveals: code?.revealsEntries ?? true)
    }
    executor.record(code, of: job)
  }

  /// Makes room for what a job has found. A stream that only waits for credit has no share of the jobs.
  /// - Returns: False if there is no room, and the stream has ended with an error.
  private func keep(
    _ result: JobResult, at index: Int, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> Bool {
    guard result.byteCount > 0 else {
      connection.streams[index].exchangeShare(for: nil)
      return true
    }
    let limit = executor.limits.maxResultBytes
    let share = executor.server.results.take(result.byteCount, for: connection.sharer, limit: limit) {
      [mailbox = executor.mailbox] in mailbox.postRevokedShare()
    }
    guard let share else {
      let failure = CommandFailure(
        .tooManyRequests,
        """
        the result has \(result.byteCount) bytes, unread results of all clients have nearly \(limit) \
        (limits.result-memory), and this client has the most; read other replies first
        """)
      C.append(failure, to: connection.endStream(at: index), into: &replies.bytes)
      return false
    }
    connection.streams[index].exchangeShare(for: share)
    return true
  }

  // MARK: Parts

  /// Appends the next part of an aggregation's reply.
  func continueRows(
    _ stream: inout ReplyStream, _ rows: AggregatedRows, from first: Int, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> StreamProgress {
    let start = replies.count
    let part = C.beginPart(
      of: stream.tag, isFirst: !stream.hasBegun, through: nil, executor.limits, into: &replies)
    var next = first
    while next < rows.rows.count, C.append(.row(rows.rows[next]), to: part, into: &replies) {
      next += 1
    }
    if next == rows.rows.count, C.append(.result(rows.result), to: part, into: &replies) {
      next += 1
    }
    stream.remainder = .rows(rows, next: next)
    let revision = stream.snapshot?.revision ?? 0
    return finish(part, from: start, of: &stream, showing: revision, on: &executor, into: &replies)
  }

  /// Appends the next part of a find's reply.
  func continueFind(
    _ stream: inout ReplyStream, _ found: FoundDocuments, from first: Int, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> StreamProgress {
    guard let snapshot = stream.snapshot else { preconditionFailure("a find has a snapshot") }
    let start = replies.count
    let part = C.beginPart(
      of: stream.tag, isFirst: !stream.hasBegun, through: nil, executor.limits, into: &replies)
    let now = executor.now
    var next: Int
    do throws(CommandFailure) {
      let visited = try executor.visit(
        found, from: first, of: stream.store, in: snapshot, read: stream.readDocument.take()
      ) { document in
        switch document {
        case .entry(let entry): C.append(entry, hasKey: true, hasValue: true, to: part, now: now, into: &replies)
        case .fields(let record): C.append(record, to: part, into: &replies)
        }
      }
      switch visited {
      case .upTo(let position): next = position
      case .nothing(let value, let handle):
        replies.truncate(to: part.start)
        let read = ValueRead(
          IncompleteReply(value), of: stream.tag, stream.store, showing: 0, isContinuation: stream.hasBegun)
        return .waiting(read, .document(read, handle: handle))
      }
    } catch {
      replies.truncate(to: part.start)
      append(error, to: stream, into: &replies)
      return .ended
    }
    if next == found.handles.count, C.append(.result(found.result), to: part, into: &replies) { next += 1 }
    stream.remainder = .found(found, next: next)
    // Even what did not match reveals the snapshot.
    return finish(part, from: start, of: &stream, showing: snapshot.revision, on: &executor, into: &replies)
  }
}

extension CommandFailure {
  static let exhaustedMemory = CommandFailure(
    .tooManyRequests, "the server has reached its memory limit; try again later")

  fileprivate static func tooManyJobs(_ limits: borrowing ServerLimits) -> CommandFailure {
    CommandFailure(
      .tooManyRequests,
      """
      there are already \(limits.finds) unfinished finds, or a quarter of that on this connection (limits.finds), and \
      this client has the most; wait for their replies first
      """)
  }
}
