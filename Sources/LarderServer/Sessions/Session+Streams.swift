import Basics
import Platform
import Storage
import Wire

/// Replies that consist of several records, in one part or several.
///
/// A request appends the first part. If there is more to send, the connection gets a `ReplyStream`, which is continued
/// part by part, as far as the client's credit goes.
extension Session {
  /// The number of parts that take long which are made in a row, so that their connections' worker gets to serve others.
  private static var maxSlowParts: Int { 4 }
  /// The size of keys that are not looked up, in bytes, that a connection's streams keep. Beyond that, all keys of a
  /// request are looked up at once.
  private static var maxKeptKeyBytes: Int { 32 << 20 }

  /// Rejects a request whose reply can't become a stream: its tag is in use, or the connection has too many streams.
  /// - Returns: Nil if the stream may be opened. Otherwise the error has been appended to the replies.
  func rejectStream(
    _ tag: UInt32, of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> RequestEnd? {
    if connection.hasStream(tag) {
      end(&connection, .malformed, "a reply stream with id \(tag) is still open", on: &executor, into: &replies)
      return .replied(failure: .malformed)
    }
    let limit = executor.limits.maxRequestsInFlight
    guard connection.streams.count >= limit else { return nil }
    let message = "this connection already has \(limit) requests in flight; wait for their replies first"
    C.append(CommandFailure(.tooManyRequests, message), to: tag, into: &replies.bytes)
    return .replied(failure: .tooManyRequests)
  }

  // MARK: Entries

  /// Appends the first part of a reply with entries, and opens a stream for the rest.
  func beginEntries(
    _ first: EntryCursor, _ revision: UInt64, of command: Command, to request: C.Request, _ body: RawSpan,
    of connection: inout Connection, on store: Store, _ map: inout EntryMap, executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    var cursor = first
    let start = replies.count
    let part = C.beginPart(of: request.tag, isFirst: true, through: nil, executor.limits, into: &replies)
    let newestRevision: UInt64
    do throws(StorageError) {
      newestRevision = try visit(&cursor, of: body, in: nil, &map, &executor, to: part, &replies)
    } catch {
      replies.truncate(to: part.start)
      let detour = Detour(error, revealing: revision)
      return follow(
        detour, of: command, to: request, body, of: &connection, on: store, &map, executor: &executor, into: &replies)
    }
    if !cursor.isEmpty, let failure = keep(&cursor, of: body, &connection, &map, &executor) {
      replies.truncate(to: part.start)
      return reply(failure, to: request, store, into: &replies)
    }
    C.end(part, through: nil, isLast: cursor.isEmpty, into: &replies)
    if let commitWriter = store.commitWriter {
      replies.require(
        max(revision, newestRevision), commitWriter, of: request.tag, from: start, reveals: true)
    }
    if !cursor.isEmpty {
      connection.open(
        ReplyStream(
          tag: request.tag, operation: command.operation, isAwaited: C.isOrdered, store: store,
          snapshot: map.snapshot(now: executor.now), remainder: .entries(cursor),
          credit: connection.credit - (replies.bytes.count - part.start), now: executor.now))
    }
    return .done
  }

  /// Makes a cursor independent of its request, whose bytes don't stay.
  /// - Returns: Why that is impossible; nil if it was done.
  private func keep(
    _ cursor: inout EntryCursor, of body: RawSpan, _ connection: inout Connection, _ map: inout EntryMap,
    _ executor: inout Executor
  ) -> CommandFailure? {
    guard case .keys(let keys) = cursor else { return nil }
    let openKeyCount = connection.streams.reduce(0) { $0 + ($1.remainder.cursor?.keyCount ?? 0) }
    guard openKeyCount + keys.remaining <= executor.limits.maxStreamKeys else {
      return CommandFailure(
        .tooManyRequests,
        "the open reply streams of this connection have \(openKeyCount) keys left to send; read them first")
    }
    let keptByteCount = connection.streams.reduce(0) { $0 + ($1.remainder.cursor?.keptKeyByteCount ?? 0) }
    cursor =
      keptByteCount + body.byteCount - keys.offset <= Self.maxKeptKeyBytes
      ? .keptKeys(EntryCursor.KeptKeys(keys, of: body, at: keys.offset))
      : .handles(executor.handles(of: keys, in: body, &map), next: 0)
    return nil
  }

  /// Appends entries to a part until there are no more, or it is full.
  /// - Returns: The newest commit that they reveal.
  @inline(__always)
  private func visit(
    _ cursor: inout EntryCursor, of body: RawSpan, in snapshot: Snapshot?, _ map: inout EntryMap,
    _ executor: inout Executor, to part: StreamPart, _ replies: inout ReplyBuffer
  ) throws(StorageError) -> UInt64 {
    let now = executor.now
    guard case .scan(let scan) = cursor else {
      return try executor.visit(&cursor, of: body, in: snapshot, &map) {
        C.append($0, hasKey: false, hasValue: true, to: part, now: now, into: &replies)
      }
    }
    return try executor.visit(&cursor, of: body, in: snapshot, &map) {
      C.append($0, hasKey: true, hasValue: !scan.isKeysOnly, to: part, now: now, into: &replies)
    }
  }

  // MARK: Continuing

  func continueStreams(
    of connection: inout Connection, notifying watchers: inout WatcherTable, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) {
    let maxReplyBytes = connection.maxReplyBytes(executor.limits)
    var slowPartCount = 0
    var isAnyReady = true
    while isAnyReady, !connection.streams.isEmpty {
      isAnyReady = false
      for index in connection.streams.indices.reversed() where connection.streams[index].isReady {
        guard replies.count < maxReplyBytes, slowPartCount < Self.maxSlowParts else { return }
        if connection.streams[index].isSlow { slowPartCount += 1 }
        var notifier: ChangeNotifier?
        if connection.streams[index].isWatch {
          connection.hasWatched = true
          notifier = watchers.add(connection.token, watching: connection.streams[index].store)
        }
        switch continueStream(&connection.streams[index], notifier, on: &executor, into: &replies) {
        case .unfinished: isAnyReady = true
        case .ended: connection.endStream(at: index)
        case .waiting(let read, let pause):
          if connection.streams[index].remainder.isEmpty { connection.endStream(at: index) }
          return wait(for: read, pause, of: &connection, on: &executor)
        }
      }
    }
  }

  /// Appends the next part of a stream.
  /// - Parameter notifier: What wakes the worker when there are more changes; nil unless the stream is a watch.
  func continueStream(
    _ stream: inout ReplyStream, _ notifier: ChangeNotifier? = nil, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> StreamProgress {
    executor.updateClock()
    defer { executor.timeHasPassed() }
    if case .changes(var watch) = stream.remainder {
      defer { stream.remainder = .changes(watch) }
      return continueWatch(&stream, &watch, notifier, on: &executor, into: &replies) ? .unfinished : .ended
    }
    switch stream.remainder {
    case .entries(let cursor): return continueEntries(&stream, cursor, on: &executor, into: &replies)
    case .found(let found, let next): return continueFind(&stream, found, from: next, on: &executor, into: &replies)
    case .rows(let rows, let next): return continueRows(&stream, rows, from: next, on: &executor, into: &replies)
    case .changes, .running: preconditionFailure("the stream is not ready")
    }
  }

  private func continueEntries(
    _ stream: inout ReplyStream, _ first: EntryCursor, on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> StreamProgress {
    guard let snapshot = stream.snapshot else { preconditionFailure("a stream of entries has a snapshot") }
    var cursor = first
    let start = replies.count
    let part = C.beginPart(of: stream.tag, isFirst: !stream.hasBegun, through: nil, executor.limits, into: &replies)
    let shownRevision: UInt64
    do throws(StorageError) {
      shownRevision = try stream.store.access { map throws(StorageError) in
        try visit(&cursor, of: RawSpan(), in: snapshot, &map, &executor, to: part, &replies)
      }
    } catch {
      replies.truncate(to: part.start)
      append(CommandFailure(error), to: stream, into: &replies)
      return .ended
    }
    stream.remainder = .entries(cursor)
    return finish(part, from: start, of: &stream, showing: shownRevision, on: &executor, into: &replies)
  }

  /// Ends a part whose records have been appended, and takes it off the stream's credit.
  /// - Parameter start: Where the part begins, as `count` was then.
  func finish(
    _ part: StreamPart, from start: Int, of stream: inout ReplyStream, showing revision: UInt64,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> StreamProgress {
    let (isFirst, isLast) = (!stream.hasBegun, stream.remainder.isEmpty)
    C.end(part, through: nil, isLast: isLast, into: &replies)
    stream.didSend(replies.bytes.count - part.start, now: executor.now)
    if replies.lacksValues {
      switch replies.readCachedValues(from: part.start) {
      case .complete: break
      case .failed(let failure):
        if isFirst {
          C.append(failure, to: stream.tag, into: &replies.bytes)
        } else {
          C.append(failure, toBegunStream: stream.tag, into: &replies.bytes)
        }
        return .ended
      case .onDisk(let reply):
        let read = ValueRead(
          reply, of: stream.tag, stream.store, showing: revision, isFollowed: !isLast, isContinuation: !isFirst)
        return .waiting(read, .reply(read))
      }
    }
    if let commitWriter = stream.store.commitWriter {
      if isFirst {
        replies.require(revision, commitWriter, of: stream.tag, from: start, reveals: true)
      } else {
        replies.requireForPart(revision, commitWriter, of: stream.tag, from: start)
      }
    }
    return isLast ? .ended : .unfinished
  }

  /// Ends a stream with a failure, whether or not a part of it has been sent.
  func append(_ failure: CommandFailure, to stream: ReplyStream, into replies: inout ReplyBuffer) {
    if stream.hasBegun {
      C.append(failure, toBegunStream: stream.tag, into: &replies.bytes)
    } else {
      C.append(failure, to: stream.tag, into: &replies.bytes)
    }
  }

  // MARK: The end

  func endStreams(
    of connection: inout Connection, _ cause: StreamEndCause, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> Bool {
    let (timeout, now) = (executor.limits.streamTimeout, executor.now)
    let inputHasEnded = connection.phase == .inputEnded && !connection.hasInput
    var hasEnded = false
    for stream in connection.streams {
      let failure: CommandFailure
      switch cause {
      case .lackOfCredit:
        let isOverdue = !stream.isWatch && stream.lastSent + timeout.wholeMilliseconds <= now
        // A client that can't cancel a watch closes its connection instead.
        let isLeft = stream.isWatch && stream.isAwaited && inputHasEnded
        guard stream.credit <= 0 && (inputHasEnded || isOverdue) || isLeft else { continue }
        failure = CommandFailure(
          .answerExpired,
          inputHasEnded
            ? "no credit can arrive, because the client has shut down its sending side"
            : "no credit arrived for \(timeout)")
      case .droppedStore:
        // A stream that waits for a job ends with the job.
        guard stream.runningJob == nil, stream.store.access({ $0.isDropped }) else { continue }
        failure = .removed(stream.store)
      case .lostMemory:
        guard stream.runningJob == nil, stream.share?.isRevoked == true else { continue }
        failure = CommandFailure(
          .answerExpired,
          "other clients need the memory of this client's unread results (limits.result-memory)")
      case .lostRight(let former):
        let name = stream.store.name
        let isPermitted = stream.isPermitted(by: connection.grants.rights(to: name), former: former.rights(to: name))
        // A change that takes place before the rights change is told of.
        if isPermitted || !stream.tryCancel() { continue }
        let action = stream.operation.action(on: "store \(name)")
        failure = CommandFailure(.notPermitted, executor.server.accessControl.refuse(action, to: connection))
      }
      if let job = stream.runningJob { executor.record(failure.code, of: job) }
      connection.endStream(tag: stream.tag)
      append(failure, to: stream, into: &replies)
      hasEnded = true
    }
    return hasEnded
  }
}

/// What has become of a stream when its next part was to be made.
enum StreamProgress {
  case unfinished, ended
  /// The part needs values that only the disk has.
  case waiting(ValueRead, Pause)
}
