import Documents
import Platform
import Storage
import Wire

/// All requests except those on the entries of an open store: `Protocol/wire.md` §6.1 to §6.3, and their access control
/// (§10).
extension NativeCodec {
  static func execute(
    _ request: FrameHeader, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    if request.id == 0 {
      return end(&connection, .malformed, "a request's id must not be 0", on: &executor, into: &replies)
    }
    do throws(CommandFailure) {
      if connection.phase == .greeting {
        return try greet(request, bytes, of: &connection, on: &executor, into: &replies)
      }
      return try executeAfterGreeting(request, bytes, of: &connection, on: &executor, into: &replies)
    } catch {
      append(error, to: request.id, into: &replies.bytes)
      return .replied(failure: error.code)
    }
  }

  /// Ends a connection with a notice.
  private static func end(
    _ connection: inout Connection, _ code: ErrorCode, _ message: String, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    NativeSession().end(&connection, code, message, on: &executor, into: &replies)
    return .replied(failure: code)
  }

  /// Answers the first request of a connection, which must be a hello.
  private static func greet(
    _ request: FrameHeader, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> RequestEnd {
    guard request.kind == Operation.hello.rawValue else {
      return end(
        &connection, .helloExpected, "the first request of a connection must be a hello", on: &executor,
        into: &replies)
    }
    let hello: ClientHello
    do throws(ClientHello.FormatError) { hello = try ClientHello(body: bytes) } catch {
      switch error {
      case .noMagic:
        return end(
          &connection, .helloExpected, "a hello must begin with the bytes LRDR", on: &executor, into: &replies)
      case .malformed:
        connection.phase = .closing
        throw malformed(BodyFlaw.ofHello(bytes))
      }
    }
    guard hello.versions.overlaps(ProtocolVersion.min...ProtocolVersion.max) else {
      connection.phase = .closing
      let range = "\(ProtocolVersion.min) to \(ProtocolVersion.max)"
      throw CommandFailure(.versionNotSupported, "this server supports versions \(range) of the protocol")
    }
    if !hello.token.isEmpty {
      do throws(AuthenticationError) {
        connection.accessToken = try executor.server.accessControl.authenticate(hello.token, of: connection)
      } catch {
        connection.phase = .closing
        throw CommandFailure(.notPermitted, error.message)
      }
    }
    connection.grants = executor.server.accessControl.grants(for: connection)
    guard !connection.grants.isNothing else {
      let end = NativeSession().refuse(
        AccessControl.useServer, request, of: &connection, on: &executor, into: &replies)
      if case .replied = end { connection.phase = .closing }
      return end
    }
    guard connection.countPrincipal(on: executor.server, executor.limits) else {
      connection.phase = .closing
      throw .tooManyOfPrincipal
    }
    executor.server.accessControl.didAdmit(connection)
    connection.phase = .open
    connection.credit = min(Int(hello.credit), ReplyStream.maxCredit)
    connection.figures.setClientName(hello.name)
    let limits = executor.limits
    replies.bytes.appendReply(
      ServerHello(
        version: min(hello.versions.upperBound, ProtocolVersion.max), features: hello.features & Features.all,
        maxFrameSize: UInt32(limits.maxFrameBytes), maxValueSize: UInt32(limits.maxValueBytes),
        maxKeySize: UInt16(Key.maxSize), maxOpenStores: UInt16(limits.maxOpenStores),
        maxRequestsInFlight: UInt32(limits.maxRequestsInFlight), maxKeyCount: UInt32(limits.maxKeysPerRequest),
        name: Server.name),
      id: request.id)
    return .done
  }

  private static func executeAfterGreeting(
    _ request: FrameHeader, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> RequestEnd {
    guard let operation = Operation(rawValue: request.kind) else {
      throw CommandFailure(.unknownOperation, "unknown operation \(request.kind)")
    }
    if operation == .credit { return addCredit(request, bytes, &connection) }
    if operation == .cancel { return cancel(request, bytes, &connection, on: &executor, into: &replies) }
    guard request.flags == 0 else { throw malformed("byte 5 of a request must be 0") }
    let descriptor = operation.descriptor
    let takesStore = descriptor.takesStore || (descriptor.target == .storeOrServer && request.detail != 0)
    guard takesStore || request.detail == 0 else { throw malformed("this operation doesn't take a store handle") }
    let store = connection.stores[request.detail]?.store
    if let store, store.freshness != nil, !descriptor.isRead, operation != .storeClose {
      throw CommandFailure(.notLeader, "another server makes the changes of the store \(store.name)")
    }
    if takesStore, store == nil {
      throw CommandFailure(.storeUnknown, "no store is open under handle \(request.detail)")
    }
    if let store {
      let rights = connection.grants.rights(to: store.name)
      if !rights.permit(descriptor) {
        let isRefusedKeys = descriptor.scope == .keys && rights.toAny >= descriptor.minRight && rights.dependOnKeys
        let action = operation.action(on: isRefusedKeys ? "these keys of store \(store.name)" : "store \(store.name)")
        return NativeSession().refuse(action, request, of: &connection, on: &executor, into: &replies)
      }
    } else if descriptor.target != .namedStore, connection.grants.onAll < descriptor.right {
      return NativeSession().refuse(
        "ask the server for \(operation.name)", request, of: &connection, on: &executor, into: &replies)
    }
    switch descriptor.target {
    case .documents:
      guard let store else { break }
      return try executeOnDocuments(
        operation, request, bytes, of: &connection, store, on: &executor, into: &replies)
    case .namedStore:
      return try executeOnStores(operation, request, bytes, of: &connection, on: &executor, into: &replies)
    default: break
    }
    let (start, offset) = (replies.bytes.count, replies.count)
    let frame = replies.bytes.beginReply(id: request.id)
    let revealed: [(revision: UInt64, commitWriter: CommitWriter)]
    do throws(CommandFailure) {
      revealed = try appendBody(
        of: operation, request, bytes, of: &connection, store, on: &executor, into: &replies)
    } catch {
      replies.truncate(to: start)
      throw error
    }
    replies.bytes.endFrame(frame)
    for (revision, commitWriter) in revealed {
      replies.require(revision, commitWriter, of: request.id, from: offset, reveals: true)
    }
    return .done
  }

  /// Appends the body of the reply to a request that is executed at once.
  /// - Returns: The commits that the reply reveals.
  private static func appendBody(
    of operation: Operation, _ request: FrameHeader, _ bytes: RawSpan, of connection: inout Connection,
    _ store: Store?, on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> [(revision: UInt64, commitWriter: CommitWriter)] {
    var revealed: [(revision: UInt64, commitWriter: CommitWriter)] = []
    switch operation {
    case .ping: try checkEmpty(bytes)
    case .stats:
      try checkEmpty(bytes)
      if let store {
        let isHeld = connection.showsUndurableCommits(replies)
        guard let statement = executor.figures(of: store, isHeld: isHeld) else {
          throw .removed(store)
        }
        for figure in statement.contents { replies.bytes.append(figure) }
        if let commitWriter = statement.commitWriter { revealed.append((statement.revision, commitWriter)) }
      } else {
        for figure in executor.server.figures() { replies.bytes.append(figure) }
      }
    case .slowLog:
      try checkEmpty(bytes)
      for record in executor.slowLog() { replies.bytes.append(record) }
    case .connections:
      guard bytes.byteCount == 4, let limit = bytes.integer(at: 0, as: UInt32.self) else {
        throw malformed(BodyFlaw.ofInteger(bytes, byteCount: 4, fills: true))
      }
      for statistics in executor.busiestConnections(Int(limit)) { replies.bytes.append(statistics) }
    case .storeClose:
      try checkEmpty(bytes)
      connection.stores.close(request.detail)
    case .storeList:
      try checkEmpty(bytes)
      let isHeld = connection.showsUndurableCommits(replies)
      let list = executor.stores(readableBy: connection.grants, isHeld: isHeld)
      for store in list.stores { replies.bytes.append(store) }
      revealed = list.revealed
    case .uploadBegin:
      try checkEmpty(bytes)
      replies.bytes.append(try beginUpload(&connection, on: &executor))
    case .uploadPart: try addUploadPart(bytes, &connection, on: &executor)
    case .uploadDiscard:
      guard bytes.byteCount == 8, let number = bytes.integer(at: 0, as: UInt64.self) else {
        throw malformed(BodyFlaw.ofInteger(bytes, byteCount: 8, fills: true))
      }
      guard connection.uploads.remove(number) else { throw connection.uploads.failure(number, executor.limits) }
    case .whoami:
      try checkEmpty(bytes)
      replies.bytes.append(executor.server.accessControl.describeRights(of: connection).encoded())
    case .rulesCheck:
      let question = try RightsQuestion(bytes.toArray())
      let decisions = executor.server.accessControl.policy.decisions(on: question)
      replies.bytes.append(JSONValue.array(decisions.map(\.json)).encoded())
    case .tokenList:
      try checkEmpty(bytes)
      replies.bytes.append(executor.server.accessControl.describeTokens().encoded())
    case .consoleLink:
      try checkEmpty(bytes)
      replies.bytes.append(try executor.server.consoleLink(for: connection).encoded())
    case .cluster:
      try checkEmpty(bytes)
      replies.bytes.append(executor.server.cluster.withLock { $0.report })
    // Only a second hello is left.
    default: throw malformed("hello was already sent")
    }
    return revealed
  }

  // MARK: Stores

  private static func executeOnStores(
    _ operation: Operation, _ request: FrameHeader, _ bytes: RawSpan, of connection: inout Connection,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> RequestEnd {
    let name: StoreName
    var argument = ""
    var maxStaleness: UInt32?
    if operation == .storeOpenStale {
      guard let body = StaleOpenRequest(bytes) else {
        throw malformed(BodyFlaw.ofInteger(bytes, byteCount: 4, fills: false))
      }
      guard bytes.byteCount <= 4 + StoreName.maxLength else {
        throw CommandFailure(StorageError.invalidStoreName("\(bytes.byteCount - 4) bytes"))
      }
      name = try storeName(body.name)
      maxStaleness = body.maxStaleness
    } else if operation == .storeCreate || operation == .storeMove {
      guard bytes.byteCount <= 2 * 255 else {
        throw CommandFailure(.illegalArgument, "the request exceeds 510 bytes")
      }
      guard let body = NamedStoreRequest(bytes) else { throw malformed("the size of the name exceeds the body") }
      name = try storeName(body.name)
      argument = body.argument
    } else {
      // A name that is too long is rejected before it is made text.
      guard bytes.byteCount <= StoreName.maxLength else {
        throw CommandFailure(StorageError.invalidStoreName("\(bytes.byteCount) bytes"))
      }
      name = try storeName(bytes.toString())
    }
    guard connection.grants.rights(to: name).permit(operation.descriptor) else {
      return NativeSession().refuse(
        operation.action(on: "store \(name)"), request, of: &connection, on: &executor, into: &replies)
    }
    let change: StoreChange.Action
    switch operation {
    case .storeOpen, .storeOpenStale:
      let start = replies.bytes.beginReply(id: request.id)
      do throws(CommandFailure) {
        replies.bytes.append(
          try executor.openStore(name, maxStaleness: maxStaleness, of: &connection.stores, connection.grants))
      } catch {
        replies.truncate(to: start)
        throw error
      }
      replies.bytes.endFrame(start)
      return .done
    case .storeCreate:
      do throws(StorageError) {
        change = .create(name, try executor.server.stores.specification(argument))
      } catch {
        throw CommandFailure(error)
      }
    case .storeMove: change = .move(name, to: argument)
    default: change = .drop(name)
    }
    return NativeSession().change(change, request, of: &connection, store: name.text, on: &executor)
  }

  private static func storeName(_ text: String) throws(CommandFailure) -> StoreName {
    do throws(StorageError) { return try StoreName(text) } catch { throw CommandFailure(error) }
  }

  // MARK: Documents and indexes

  private static func executeOnDocuments(
    _ operation: Operation, _ request: FrameHeader, _ bytes: RawSpan, of connection: inout Connection,
    _ store: Store, on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> RequestEnd {
    switch operation {
    case .find, .aggregate, .changeMatching:
      guard let documentRequest = DocumentRequest(operation, bytes) else {
        throw malformed(BodyFlaw.ofDocuments(bytes, of: operation))
      }
      return NativeSession().startJob(
        documentRequest, request, bytes, of: &connection, store, on: &executor, into: &replies)
    default: break
    }
    // Another one may have its name by now.
    guard !store.access({ $0.isDropped }) else { throw .removed(store) }
    switch operation {
    case .indexEnsure:
      let index = try DocumentIndex(parsingCommand: bytes.toArray())
      return NativeSession().change(
        .ensureIndex(index, of: store.name), request, of: &connection, store: store.name.text, on: &executor)
    case .indexDelete:
      guard bytes.byteCount <= DocumentIndex.maxNameByteCount else {
        throw CommandFailure(.indexUnknown, "the name of an index has at most \(DocumentIndex.maxNameByteCount) bytes")
      }
      return NativeSession().change(
        .deleteIndex(bytes.toString(), of: store.name), request, of: &connection, store: store.name.text,
        on: &executor)
    default:
      try checkEmpty(bytes)
      let reports = executor.indexReports(of: store)
      guard reports.count <= executor.limits.maxBodyBytes else {
        throw CommandFailure(.failed, "the list of indexes is larger than a frame (limits.frame-bytes)")
      }
      let start = replies.bytes.beginReply(id: request.id)
      replies.bytes.append(reports)
      replies.bytes.endFrame(start)
      return .done
    }
  }

  // MARK: Uploads

  private static func beginUpload(
    _ connection: inout Connection, on executor: inout Executor
  ) throws(CommandFailure) -> UInt64 {
    let (buffers, sharer, now, mailbox) = (executor.server.buffers, connection.sharer, executor.now, executor.mailbox)
    let number = connection.uploads.begin {
      ValueUpload(buffers, for: sharer, now: now) { mailbox.postRevokedShare() }
    }
    guard let number else {
      throw CommandFailure(.tooManyRequests, "the connection has \(ValueUpload.maxCount) uploads already")
    }
    return number
  }

  private static func addUploadPart(
    _ bytes: RawSpan, _ connection: inout Connection, on executor: inout Executor
  ) throws(CommandFailure) {
    guard let part = UploadPart(bytes) else { throw malformed(BodyFlaw.ofUploadPart(bytes)) }
    guard let upload = connection.uploads[part.number] else {
      throw connection.uploads.failure(part.number, executor.limits)
    }
    guard part.offset == upload.byteCount else {
      throw CommandFailure(
        .illegalArgument, "the part begins at byte \(part.offset), and the upload has \(upload.byteCount) bytes")
    }
    let maxSize = executor.limits.maxValueBytes
    guard part.bytes.count <= maxSize - upload.byteCount else {
      throw CommandFailure(
        .valueTooLarge,
        "with the part, the value has \(upload.byteCount + part.bytes.count) bytes; the limit is \(maxSize)")
    }
    guard !executor.server.memory.isExhausted else { throw .exhaustedMemory }
    guard upload.append(bytes.extracting(part.bytes), now: executor.now) else {
      throw CommandFailure(
        .tooManyRequests,
        "the server has too many incomplete uploads, and this client has the most; try again later")
    }
  }

  // MARK: Reply streams

  /// Executes the credit and cancel frames for open streams that are among the requests that wait for a stream. So that
  /// stream can be canceled, and others go on. One for a stream that is not open waits, because a request that opens it
  /// may be in front of it.
  static func executeAhead(
    of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer
  ) {
    while connection.waits.isAwaitingStream {
      let offset = connection.input.visitedByteCount
      // The input stays where it is while requests are executed.
      let bytes = unsafe RawSpan(_unsafeBytes: connection.input.waitingBytes)
      guard case .request(let request) = scan(bytes, at: offset, maxSize: executor.limits.maxFrameBytes) else { return }
      connection.input.visit(request.frameSize)
      let operation = Operation(rawValue: request.kind)
      guard operation == .credit || operation == .cancel, connection.hasStream(request.id) else { continue }
      let body = bytes.extracting(request.body(at: offset))
      if operation == .credit {
        _ = addCredit(request, body, &connection)
      } else {
        _ = cancel(request, body, &connection, on: &executor, into: &replies)
      }
      // It is a frame without an effect when its turn comes.
      connection.input.replaceByte(at: offset + 5, with: 1)
    }
  }

  /// Adds to the credit of a stream. There is no reply, and a stream that has just ended is no error.
  private static func addCredit(
    _ request: FrameHeader, _ bytes: RawSpan, _ connection: inout Connection
  ) -> RequestEnd {
    guard request.flags == 0, request.detail == 0, bytes.byteCount == 4,
      let amount = bytes.integer(at: 0, as: UInt32.self),
      let index = connection.streams.firstIndex(where: { $0.tag == request.id })
    else { return .done }
    connection.streams[index].addCredit(Int(amount))
    return .done
  }

  /// Ends a stream. The reply, an error, is the stream's last frame; there is none if the stream has just ended.
  private static func cancel(
    _ request: FrameHeader, _ bytes: RawSpan, _ connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    guard request.flags == 0, request.detail == 0, bytes.byteCount == 0,
      let index = connection.streams.firstIndex(where: { $0.tag == request.id }), connection.streams[index].tryCancel()
    else { return .done }
    if let job = connection.streams[index].runningJob { executor.record(.cancelled, of: job) }
    connection.endStream(at: index)
    append(CommandFailure(.cancelled), to: request.id, into: &replies.bytes)
    return .replied(failure: .cancelled)
  }
}

extension Operation {
  /// What the operation does to a store, as it reads after "may not".
  /// - Parameter object: The store, as in `store orders`, or part of it.
  func action(on object: String) -> String {
    let verb =
      switch self {
      case .storeCreate: "create"
      case .storeMove: "move"
      case .storeDrop: "drop"
      case .indexEnsure, .indexDelete: "change the indexes of"
      default: descriptor.right == .read ? "read" : "write to"
      }
    return "\(verb) \(object)"
  }
}
