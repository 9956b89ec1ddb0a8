import Storage
import Wire

/// Serves clients that speak RESP, the protocol of Redis.
struct RESPSession: Session {
  typealias C = RESPCodec
}

/// RESP, versions 2 and 3. Commands on entries are executed by a `RESPRun`, and all others in `RESPCodec+Connection` and
/// `RESPCodec+Server`.
enum RESPCodec: Codec {
  static var hasGreeting: Bool { false }
  static var isOrdered: Bool { true }
  static var keepsReplies: Bool { true }

  // MARK: Requests

  @inline(__always)
  static func scan(_ bytes: RawSpan, at offset: Int, maxSize: Int) -> RequestScan<RESPRequest> {
    RESPRequest.scan(bytes, at: offset, maxSize: maxSize)
  }

  static func makeClientState(_ server: ServerState, _ mailbox: Mailbox, _ sharer: ConnectionSharer) -> AnyObject? {
    RESPClient(server, mailbox, sharer)
  }

  static func didChangeRights(of connection: inout Connection) { connection.respClient.abortTransaction() }

  static func hasLostMemory(_ connection: inout Connection) -> Bool { connection.respClient.hasLostMemory }

  @inline(__always)
  static func maxRequestSize(_ limits: borrowing ServerLimits, isStranger: Bool) -> Int {
    isStranger ? RESPRequest.maxSizeBeforeAuthentication : limits.maxFrameBytes
  }

  @inline(__always)
  static func key(of request: RESPRequest, _ bytes: RawSpan) -> Range<Int>? {
    guard request.store != 0, request.count > 1 else { return nil }
    let key = request.word(1, bytes)
    return Key.isValidSize(key.count) ? key : nil
  }

  @inline(__always)
  static func soleKey(of request: RESPRequest, _ bytes: RawSpan) -> Range<Int>? {
    guard request.command == .get || request.command == .set, !request.isLine, request.count > 1 else { return nil }
    return request.word(1, bytes)
  }

  static func command(of request: RESPRequest, _ bytes: RawSpan) throws(CommandFailure) -> Command {
    preconditionFailure("RESP executes its requests itself")
  }

  static func isPermitted(_ request: RESPRequest, _ bytes: RawSpan, by rights: StoreRights) -> Bool {
    guard request.isLine else { return request.isPermitted(bytes, by: rights) }
    // The execution says what is wrong with the line.
    guard let (request, array) = RESPLine.request(in: bytes) else { return true }
    return unsafe request.isPermitted(array.span.bytes, by: rights)
  }

  @inline(__always)
  static func executeOnEntries(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, on store: Store, _ map: inout EntryMap,
    executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(Detour) -> CodecExecution? {
    let client = connection.respClient
    if request.isLine {
      return try executeLine(
        request, bytes, of: &connection, on: store, &map, executor: &executor, into: &replies)
    }
    if unsafe client.isRestricted, let refusal = refusal(ofQueued: request, client, &map, into: &replies) {
      return refusal
    }
    if let refusal = refusal(of: request, bytes, client, &executor, into: &replies) {
      return CodecExecution(failure: refusal.failure, shownRevision: 0)
    }
    if map.isDropped {
      // A store of the same name may have been created since.
      connection.stores.close(1)
      throw .deferred
    }
    let memory = request.size < AttachedValue.minSize ? nil : connection.input.valueMemory
    var run = RESPRun(
      client, store: store, permitted: connection.stores[1]?.permitted ?? .none, &executor, memory: memory)
    let mark = replies.bytes.count
    do throws(RESPFailure) {
      try run.execute(request, bytes, &map, into: &replies)
      if run.hasDeletedAll { executor.server.accessControl.didEmpty(store.name, connection) }
      return CodecExecution(failure: nil, shownRevision: run.shownRevision)
    } catch {
      replies.truncate(to: mark)
      switch error {
      case .error(let text):
        replies.bytes.appendRESP(error: text)
        return CodecExecution(failure: .illegalArgument, shownRevision: run.shownRevision)
      case .detour(let detour):
        if request.command == .exec, let failure = failure(ending: detour, connection.waits) {
          return CodecExecution(failure: refuse(request, failure, client, into: &replies).failure, shownRevision: 0)
        }
        throw detour
      }
    }
  }

  /// Returns why a transaction can't be executed, which ends it; nil if it is executed later.
  private static func failure(ending detour: Detour, _ waits: Waits) -> CommandFailure? {
    switch detour {
    case .failure(let failure): failure
    case .needsSpace: waits.mayWaitForSpace ? nil : CommandFailure(.diskTooSlow)
    default: nil
    }
  }

  /// Refuses to queue a write in a transaction if the store would refuse the transaction now.
  private static func refusal(
    ofQueued request: RESPRequest, _ client: RESPClient, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) -> CodecExecution? {
    guard let transaction = client.transaction, !request.controlsTransaction, request.isWrite, request.hasValidCount
    else { return nil }
    do throws(StorageError) {
      try transaction.checkRoom(for: request, &map)
      return nil
    } catch {
      // EXEC may wait for anything else, or finds out that the store was dropped.
      guard case .failure(let failure) = Detour(error, revealing: map.revisions.last), error != .storeDropped else {
        return nil
      }
      return CodecExecution(failure: refuse(request, failure, client, into: &replies).failure, shownRevision: 0)
    }
  }

  /// Executes the command in a line.
  @inline(never)
  private static func executeLine(
    _ line: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, on store: Store, _ map: inout EntryMap,
    executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(Detour) -> CodecExecution? {
    guard let (request, array) = RESPLine.request(in: bytes) else {
      end(&connection, unbalancedQuotes, on: &executor, into: &replies)
      return CodecExecution(failure: .malformed, shownRevision: 0)
    }
    return unsafe try executeOnEntries(
      request, array.span.bytes, of: &connection, on: store, &map, executor: &executor, into: &replies)
  }

  private static let unbalancedQuotes = CommandFailure(
    .malformed, "Protocol error: unbalanced quotes in request")

  /// Ends a connection because nothing after a request can be decoded.
  private static func end(
    _ connection: inout Connection, _ failure: CommandFailure, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) {
    RESPSession().end(&connection, failure.code, failure.message, on: &executor, into: &replies)
  }

  /// Why a request isn't executed now. Its reply has been appended.
  private struct Refusal {
    /// The error of the reply; nil if there is none.
    let failure: ErrorCode?
  }

  /// Appends the reply to a request that isn't executed now: because its form is wrong, or because a transaction has
  /// begun.
  /// - Returns: Nil if it is to be executed.
  @inline(__always)
  private static func refusal(
    of request: RESPRequest, _ bytes: RawSpan, _ client: RESPClient, _ executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> Refusal? {
    if !request.hasValidCount {
      if let error = formError(of: request, bytes) {
        return refuse(request, error, .malformed, client, into: &replies)
      }
      if client.transaction == nil, appendHelp(request, bytes, into: &replies) { return Refusal(failure: nil) }
    }
    guard unsafe client.isRestricted else { return nil }
    if client.isSubscribedOnly, !isAllowedForSubscribers(request.command) {
      let name = fullName(of: request, bytes)
      let error =
        "ERR Can't execute '\(name)': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
        + "context"
      return refuse(request, error, .malformed, client, into: &replies)
    }
    guard client.transaction != nil, !request.controlsTransaction else { return nil }
    return queue(request, bytes, client, &executor, into: &replies)
  }

  /// Returns the error for a subcommand that there isn't, or for too few or too many words; nil if the form is right.
  private static func formError(of request: RESPRequest, _ bytes: RawSpan) -> String? {
    let (name, descriptor) = (request.command.name, request.command.descriptor)
    guard !descriptor.subcommands.isEmpty, request.count > 1 else {
      if RESPDescriptor.accepts(request.count, arity: descriptor.arity) { return nil }
      return text(of: .wrongNumberOfArguments(name))
    }
    let word = bytes.extracting(request.word(1, bytes)).toString()
    guard let subcommand = descriptor.subcommands.first(where: { $0.name == word.uppercased() }) else {
      return "ERR unknown subcommand '\(word.prefix(maxRepeatedSize))'. Try \(name.uppercased()) HELP."
    }
    if RESPDescriptor.accepts(request.count, arity: subcommand.arity) { return nil }
    return text(of: .wrongNumberOfArguments(fullName(of: request, bytes)))
  }

  /// The name of a command, with that of its subcommand after a bar.
  private static func fullName(of request: RESPRequest, _ bytes: RawSpan) -> String {
    let name = request.command.name
    guard !request.command.descriptor.subcommands.isEmpty, request.count > 1 else { return name }
    return "\(name)|\(bytes.extracting(request.word(1, bytes)).toString().lowercased())"
  }

  /// Appends the reply to a HELP.
  /// - Returns: False if the request is anything else.
  static func appendHelp(_ request: RESPRequest, _ bytes: RawSpan, into replies: inout ReplyBuffer) -> Bool {
    let descriptor = request.command.descriptor
    guard !descriptor.subcommands.isEmpty, request.count == 2, bytes.extracting(request.word(1, bytes)).isWord("HELP")
    else { return false }
    let lines = descriptor.help(request.command.name)
    replies.bytes.appendRESP(arrayOf: lines.count)
    for line in lines {
      replies.bytes.append("+\(line)")
      replies.bytes.appendRESPEnd()
    }
    return true
  }

  /// Appends the error of a request that isn't executed. It ends a transaction if it is EXEC, and aborts it otherwise, so
  /// that EXEC ends it.
  @discardableResult
  private static func refuse(
    _ request: RESPRequest, _ error: String, _ code: ErrorCode, _ client: RESPClient, into replies: inout ReplyBuffer
  ) -> Refusal {
    if request.command == .exec {
      client.discardTransaction()
      let reason = error.hasPrefix("ERR ") ? error.dropFirst("ERR ".count) : error[...]
      replies.bytes.appendRESP(error: "EXECABORT Transaction discarded because of: \(reason)")
    } else {
      client.abortTransaction()
      replies.bytes.appendRESP(error: error)
    }
    return Refusal(failure: code)
  }

  @discardableResult
  private static func refuse(
    _ request: RESPRequest, _ failure: CommandFailure, _ client: RESPClient, into replies: inout ReplyBuffer
  ) -> Refusal {
    refuse(request, text(of: failure), failure.code, client, into: &replies)
  }

  static func refuse(
    _ request: RESPRequest, _ failure: CommandFailure, of connection: inout Connection, into replies: inout ReplyBuffer
  ) {
    refuse(request, failure, connection.respClient, into: &replies)
  }

  /// Queues a request in a transaction, or refuses it there.
  private static func queue(
    _ request: RESPRequest, _ bytes: RawSpan, _ client: RESPClient, _ executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> Refusal? {
    guard isQueueable(request, bytes, client, executor.server.databases) else {
      let error = "ERR \(request.command.name.uppercased()) is not allowed in transactions"
      return refuse(request, error, .illegalArgument, client, into: &replies)
    }
    do throws(RESPFailure) {
      try client.queue(request, bytes, maxByteCount: executor.limits.maxFrameBytes)
    } catch {
      return refuse(request, text(of: error), .valueTooLarge, client, into: &replies)
    }
    replies.bytes.appendRESP(simple: "QUEUED")
    return Refusal(failure: nil)
  }

  static func execute(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    guard request.isLine else {
      return executeArray(request, bytes, of: &connection, on: &executor, into: &replies)
    }
    guard let (request, array) = RESPLine.request(in: bytes) else {
      end(&connection, unbalancedQuotes, on: &executor, into: &replies)
      return .replied(failure: .malformed)
    }
    return unsafe executeArray(request, array.span.bytes, of: &connection, on: &executor, into: &replies)
  }

  private static func executeArray(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    guard request.count > 0 else { return .done }
    if connection.grants.isNothing {
      guard !executor.server.accessControl.policy.tokens.isEmpty else {
        let end = RESPSession().refuse(
          AccessControl.useServer, request, of: &connection, on: &executor, into: &replies)
        if case .replied = end { connection.phase = .closing }
        return end
      }
      guard request.command.precedesAuthentication else {
        replies.bytes.appendRESP(error: "NOAUTH Authentication required.")
        return .replied(failure: .notPermitted)
      }
    }
    let client = connection.respClient
    if request.command == .unknown {
      let refusal = refuse(request, unknownCommand(request, bytes), .unknownOperation, client, into: &replies)
      return .replied(failure: refusal.failure)
    }
    if let action = request.actionOnChannels(bytes, refusedBy: connection.grants) {
      return RESPSession().refuse(action, request, of: &connection, on: &executor, into: &replies)
    }
    // Only a store can be missing, or a right to it.
    if request.store != 0 {
      return openStore(for: request, of: &connection, on: &executor, into: &replies)
    }
    if let refusal = refusal(of: request, bytes, client, &executor, into: &replies) {
      return .replied(failure: refusal.failure)
    }
    let mark = replies.bytes.count
    do throws(RESPFailure) {
      try execute(request, bytes, of: &connection, client, on: &executor, into: &replies)
      return .done
    } catch {
      replies.truncate(to: mark)
      replies.bytes.appendRESP(error: text(of: error))
      return .replied(failure: .illegalArgument)
    }
  }

  /// The arguments that an error repeats, in bytes.
  private static let maxRepeatedSize = 128

  private static func unknownCommand(_ request: RESPRequest, _ bytes: RawSpan) -> String {
    let name = bytes.extracting(request.word(0, bytes)).toString().prefix(maxRepeatedSize)
    var arguments = ""
    var words = request.words(from: 1, bytes)
    while arguments.utf8.count < maxRepeatedSize, let word = words.next(bytes) {
      arguments += "'\(bytes.extracting(word).toString().prefix(maxRepeatedSize - arguments.utf8.count))' "
    }
    return "ERR unknown command '\(name)', with args beginning with: \(arguments)"
  }

  // MARK: Databases

  /// Opens the store of the selected database, so that the request can be executed on it.
  private static func openStore(
    for request: RESPRequest, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    let client = connection.respClient
    if let opened = connection.stores[1] {
      // A line hides its command in quotes, so that it was found too late for the lock.
      if opened.permitted.contains(request.operation) {
        let error = "ERR write the name of the command without quotes"
        return .replied(failure: refuse(request, error, .malformed, client, into: &replies).failure)
      }
      return RESPSession().refuse(
        "use '\(request.command.name)' on database \(client.database)", request, of: &connection, on: &executor,
        into: &replies)
    }
    do throws(CommandFailure) {
      try selectDatabase(client.database, of: &connection, on: &executor)
      return .deferred
    } catch {
      return .replied(failure: refuse(request, error, client, into: &replies).failure)
    }
  }

  /// Opens the store of a database. A client that has no right to it doesn't learn whether there is one.
  static func selectDatabase(
    _ database: Int, of connection: inout Connection, on executor: inout Executor
  ) throws(CommandFailure) {
    let name = executor.server.databases.store(database, in: executor.server.stores)
    let right = name.map { connection.grants.rights(to: $0).toAny } ?? connection.grants.onAll
    guard right > .nothing else {
      let message = executor.server.accessControl.refuse("use database \(database)", to: connection)
      throw CommandFailure(.notPermitted, message)
    }
    guard let name else {
      if let reason = executor.server.stores.missingKnowledge {
        throw CommandFailure(.notLeader, "this server can't serve all stores: \(reason)", isLoading: true)
      }
      throw CommandFailure(
        .storeUnknown,
        database == 0
          ? "database 0 has no store; resp.databases maps databases to stores"
          : "DB index is out of range; resp.databases maps databases to stores")
    }
    if connection.stores[1] != nil { connection.stores.close(1) }
    _ = try executor.openStore(name, of: &connection.stores, connection.grants)
    connection.respClient.database = database
    executor.server.events.watchStores(executor.server.stores)
  }

  // MARK: Replies

  static func append(_ outcome: CommandOutcome, to request: UInt32, now: UInt64, into replies: inout ReplyBuffer) {
    preconditionFailure("RESP appends its replies itself")
  }

  static func append(_ outcome: LateOutcome, to request: UInt32, into replies: inout ReplyBuffer) {
    preconditionFailure("RESP appends its replies itself")
  }

  static func append(_ failure: CommandFailure, to request: UInt32?, into bytes: inout ByteBuffer) {
    bytes.appendRESP(error: text(of: failure))
  }

  /// Returns the text of an error, whose first word tells clients what to do.
  static func text(of failure: RESPFailure) -> String {
    switch failure {
    case .error(let text): return text
    case .detour(.failure(let failure)): return text(of: failure)
    case .detour: return "TRYAGAIN the store can't execute this now"
    }
  }

  private static func text(of failure: CommandFailure) -> String {
    // An error is a line; any other one of the message is for programs.
    let message = failure.message.isEmpty ? "\(failure.code)" : String(failure.message.prefix { $0 != "\n" })
    let code =
      switch failure.code {
      case .storeFull, .valueTooLarge: "OOM"
      case .notLeader where failure.isLoading: "LOADING"
      case .storeReadOnly, .notLeader: "READONLY"
      case .notPermitted: "NOPERM"
      case .tooManyRequests: "TRYAGAIN"
      default: "ERR"
      }
    return "\(code) \(message)"
  }

  // MARK: Streams

  static func beginPart(
    of request: UInt32, isFirst: Bool, through throughRevision: UInt64?, _ limits: borrowing ServerLimits,
    into replies: inout ReplyBuffer
  ) -> StreamPart {
    preconditionFailure("RESP has no streams")
  }

  static func append(
    _ entry: EntryView?, hasKey: Bool, hasValue: Bool, to part: StreamPart, now: UInt64, into replies: inout ReplyBuffer
  ) -> Bool {
    preconditionFailure("RESP has no streams")
  }

  static func append(_ record: StreamRecord, to part: StreamPart, into replies: inout ReplyBuffer) -> Bool {
    preconditionFailure("RESP has no streams")
  }

  static func end(
    _ part: StreamPart, through throughRevision: UInt64?, isLast: Bool, into replies: inout ReplyBuffer
  ) {
    preconditionFailure("RESP has no streams")
  }
}
