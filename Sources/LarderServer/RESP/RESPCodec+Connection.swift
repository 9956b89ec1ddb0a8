import Platform
import Storage
import Tokens
import Wire

/// Commands on the connection, and those on transactions that need no store.
extension RESPCodec {
  /// Executes a command that isn't on entries.
  static func execute(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, _ client: RESPClient,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    switch request.command {
    case .ping where client.isSubscribedOnly && request.count <= 2:
      replies.bytes.appendRESP(arrayOf: 2)
      replies.bytes.appendRESP(bulk: "pong")
      replies.bytes.appendRESP(bulk: request.count == 2 ? bytes.extracting(request.word(1, bytes)) : RawSpan())
    case .echo, .ping, .publish, .time: try executeQueued(request, bytes, client, into: &replies)
    case .subscribe, .psubscribe:
      try subscribe(
        request, bytes, request.command == .subscribe ? .channel : .pattern, of: &connection, client, into: &replies)
      executor.server.events.watchStores(executor.server.stores)
    case .unsubscribe, .punsubscribe:
      unsubscribe(
        request, bytes, request.command == .unsubscribe ? .channel : .pattern, of: &connection, client, into: &replies)
    case .pubsub: try describeChannels(request, bytes, client, into: &replies)
    case .hello: try greet(request, bytes, of: &connection, client, on: &executor, into: &replies)
    case .auth: try executeAuth(request, bytes, of: &connection, on: &executor, into: &replies)
    case .select:
      guard let database = bytes.extracting(request.word(1, bytes)).decimalNumber else {
        throw .error("ERR value is not an integer or out of range")
      }
      do throws(CommandFailure) { try selectDatabase(database, of: &connection, on: &executor) } catch {
        throw .detour(.failure(error))
      }
      replies.bytes.appendRESPOK()
    case .quit:
      replies.bytes.appendRESPOK()
      connection.phase = .closing
    case .reset:
      client.reset()
      connection.expectsPushes = false
      if connection.stores[1] != nil { connection.stores.close(1) }
      replies.bytes.appendRESP(simple: "RESET")
    case .client: try executeClient(request, bytes, of: &connection, client, on: &executor, into: &replies)
    case .multi:
      guard client.transaction == nil else { throw .error("ERR MULTI calls can not be nested") }
      client.beginTransaction()
      replies.bytes.appendRESPOK()
    case .discard:
      guard client.transaction != nil else { throw .error("ERR DISCARD without MULTI") }
      client.discardTransaction()
      replies.bytes.appendRESPOK()
    case .unwatch:
      client.unwatch()
      replies.bytes.appendRESPOK()
    default: try executeOnServer(request, bytes, of: &connection, client, on: &executor, into: &replies)
    }
  }

  /// Whether a request may be queued in a transaction, which stays in one database.
  static func isQueueable(
    _ request: RESPRequest, _ bytes: RawSpan, _ client: RESPClient, _ databases: RESPDatabases
  ) -> Bool {
    switch request.command {
    case .echo, .ping, .publish, .time, .unwatch: true
    case .flushall: databases.numbers.count == 1
    case .select: bytes.extracting(request.word(1, bytes)).decimalNumber == client.database
    default: request.store != 0
    }
  }

  /// Executes a command that needs nothing but itself, perhaps within a transaction.
  static func executeQueued(
    _ request: RESPRequest, _ bytes: RawSpan, _ client: RESPClient, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    switch request.command {
    case .echo: replies.bytes.appendRESP(bulk: bytes.extracting(request.word(1, bytes)))
    case .publish: try publish(request, bytes, client, into: &replies)
    case .ping where request.count == 1: replies.bytes.appendRESP(simple: "PONG")
    case .ping where request.count == 2: replies.bytes.appendRESP(bulk: bytes.extracting(request.word(1, bytes)))
    case .ping: throw .wrongNumberOfArguments(request.command.name)
    case .time:
      let time = WallClock.microseconds()
      replies.bytes.appendRESP(arrayOf: 2)
      replies.bytes.appendRESP(bulk: "\(time / 1_000_000)")
      replies.bytes.appendRESP(bulk: "\(time % 1_000_000)")
    default: replies.bytes.appendRESPOK()
    }
  }

  // MARK: Greeting

  private static func greet(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, _ client: RESPClient,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    var words = request.words(from: 1, bytes)
    var version = client.version
    var name: String?
    if let word = words.next(bytes) {
      guard let number = bytes.extracting(word).decimalNumber else {
        throw .error("ERR Protocol version is not an integer or out of range")
      }
      guard let chosen = RESPVersion(rawValue: number) else { throw .error("NOPROTO unsupported protocol version") }
      version = chosen
      while let word = words.next(bytes) {
        let option = bytes.extracting(word)
        if option.isWord("AUTH"), let user = words.next(bytes), let password = words.next(bytes) {
          try authenticate(bytes.extracting(user), bytes.extracting(password), of: &connection, on: executor)
        } else if option.isWord("SETNAME"), let value = words.next(bytes) {
          name = try clientName(bytes.extracting(value))
        } else {
          throw .error("ERR Syntax error in HELLO option '\(option.toString())'")
        }
      }
    }
    if connection.grants.isNothing {
      throw .error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> "
          + "option can be used to authenticate the client and select the RESP protocol version at the same time")
    }
    client.version = version
    if let name { setName(name, of: &connection, client) }
    replies.bytes.appendRESP(mapOf: 7, version)
    replies.bytes.appendRESP(bulk: "server")
    replies.bytes.appendRESP(bulk: "larder")
    replies.bytes.appendRESP(bulk: "version")
    replies.bytes.appendRESP(bulk: RESPInfo.redisVersion)
    replies.bytes.appendRESP(bulk: "proto")
    replies.bytes.appendRESP(version.rawValue)
    replies.bytes.appendRESP(bulk: "id")
    replies.bytes.appendRESP(Int(connection.figures.number))
    replies.bytes.appendRESP(bulk: "mode")
    replies.bytes.appendRESP(bulk: "standalone")
    replies.bytes.appendRESP(bulk: "role")
    replies.bytes.appendRESP(bulk: "master")
    replies.bytes.appendRESP(bulk: "modules")
    replies.bytes.appendRESP(arrayOf: 0)
  }

  private static func executeAuth(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    guard request.count <= 3 else { throw .syntax }
    let password = bytes.extracting(request.word(request.count - 1, bytes))
    if request.count == 3 {
      try authenticate(bytes.extracting(request.word(1, bytes)), password, of: &connection, on: executor)
    } else {
      guard hasTokens(executor) else {
        throw .error(
          "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
            + "configuration is correct?")
      }
      try authenticate(nil, password, of: &connection, on: executor)
    }
    replies.bytes.appendRESPOK()
  }

  private static func hasTokens(_ executor: borrowing Executor) -> Bool {
    !executor.server.accessControl.policy.tokens.isEmpty
  }

  /// Authenticates a client by a token, which is its password. On a server without tokens there is one user, without a
  /// password.
  /// - Parameter user: nil for none.
  private static func authenticate(
    _ user: RawSpan?, _ password: RawSpan, of connection: inout Connection, on executor: borrowing Executor
  ) throws(RESPFailure) {
    let user = user?.toString() ?? "default"
    let wrong = RESPFailure.error("WRONGPASS invalid username-password pair or user is disabled.")
    let accessControl = executor.server.accessControl
    guard !accessControl.policy.tokens.isEmpty else {
      guard user == "default" else { throw wrong }
      return
    }
    let token: TokenDigest
    do throws(AuthenticationError) {
      token = try accessControl.authenticate(password.toString(), of: connection)
    } catch {
      throw error == .invalidToken ? wrong : .error("WRONGPASS \(error.message)")
    }
    guard user == "default" || user == accessControl.policy.tokens.record(token)?.name else { throw wrong }
    connection.accessToken = token
    connection.grants = accessControl.grants(for: connection)
    connection.stores.permit(connection.grants)
    guard connection.countPrincipal(on: executor.server, executor.limits) else {
      connection.phase = .closing
      throw .error("ERR max number of clients reached")
    }
    accessControl.didAdmit(connection)
  }

  // MARK: CLIENT

  private static func executeClient(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, _ client: RESPClient,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let subcommand = bytes.extracting(request.word(1, bytes))
    if subcommand.isWord("ID") {
      replies.bytes.appendRESP(Int(connection.figures.number))
    } else if subcommand.isWord("GETNAME") {
      if client.name.isEmpty {
        replies.bytes.appendRESPNull(client.version)
      } else {
        replies.bytes.appendRESP(bulk: client.name)
      }
    } else if subcommand.isWord("INFO") {
      let id = connection.figures.number
      let own = executor.busiestConnections(.max).first { $0.number == id }
      replies.bytes.appendRESP(verbatim: own.map { RESPInfo.line(of: $0, askedBy: client, id) } ?? "", client.version)
    } else if subcommand.isWord("LIST") {
      let ids = try listedClients(request, bytes)
      let (own, seesOthers) = (connection.figures.number, connection.grants.onAll >= .admin)
      let listed = executor.busiestConnections(.max).filter { other in
        (seesOthers || other.number == own) && ids?.contains(Int(other.number)) != false
      }
      let lines = listed.sorted { $0.number < $1.number }.map { RESPInfo.line(of: $0, askedBy: client, own) }
      replies.bytes.appendRESP(verbatim: lines.joined(), client.version)
    } else if subcommand.isWord("SETNAME") {
      setName(try clientName(bytes.extracting(request.word(2, bytes))), of: &connection, client)
      replies.bytes.appendRESPOK()
    } else if subcommand.isWord("NO-EVICT") || subcommand.isWord("NO-TOUCH") {
      let isOn = bytes.extracting(request.word(2, bytes))
      guard isOn.isWord("ON") || isOn.isWord("OFF") else { throw .syntax }
      replies.bytes.appendRESPOK()
    } else {
      let (option, value) = (bytes.extracting(request.word(2, bytes)), bytes.extracting(request.word(3, bytes)))
      if option.isWord("LIB-NAME") {
        client.libraryName = try clientName(value)
      } else if option.isWord("LIB-VER") {
        client.libraryVersion = try clientName(value)
      } else {
        throw .error("ERR Unrecognized option '\(option.toString())'")
      }
      replies.bytes.appendRESPOK()
    }
  }

  /// Returns the clients that CLIENT LIST asks for; nil for all.
  private static func listedClients(_ request: RESPRequest, _ bytes: RawSpan) throws(RESPFailure) -> Set<Int>? {
    guard request.count > 2 else { return nil }
    var words = request.words(from: 2, bytes)
    guard request.count > 3, let option = words.next(bytes) else { throw .syntax }
    if bytes.extracting(option).isWord("TYPE"), request.count == 4, let type = words.next(bytes) {
      // There are no replicas, and no others than clients.
      return bytes.extracting(type).isWord("NORMAL") ? nil : []
    }
    guard bytes.extracting(option).isWord("ID") else { throw .syntax }
    var ids: Set<Int> = []
    while let word = words.next(bytes) {
      guard let id = bytes.extracting(word).decimalNumber, id > 0 else { throw .error("ERR Invalid client ID") }
      ids.insert(id)
    }
    return ids
  }

  /// The maximum size of a name that a client gives itself, in bytes.
  private static let maxNameSize = 256

  private static func clientName(_ bytes: RawSpan) throws(RESPFailure) -> String {
    let name = bytes.toArray()
    guard name.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .error("ERR Client names cannot contain spaces, newlines or special characters.")
    }
    guard name.count <= maxNameSize else { throw .error("ERR a name has at most \(maxNameSize) bytes") }
    return String(decoding: name, as: UTF8.self)
  }

  private static func setName(_ name: String, of connection: inout Connection, _ client: RESPClient) {
    client.name = name
    connection.figures.setClientName(name)
  }
}
