import Basics
import Documents
import Platform
import Wire

/// A client of a Larder server. A value that is cheap to copy and safe to use from any task. All copies share the
/// client's connections, which close when the last copy is released.
///
///     let larder = try LarderClient("unix:/run/larder.sock")
///     let items = larder.store("items")
///     try await items.put("apple", Array("red".utf8))
///     let apple = try await items.get("apple")
///
/// The first call connects, and the client reconnects by itself. Each call has a timeout that covers all of that; see
/// `with(timeout:)`. If a task is cancelled, its call ends at once with an error of the kind `cancelled`.
///
/// A call suspends its task, and keeps no thread while it waits. While calls come, a task of the client looks for their
/// replies again and again between the other tasks, for 0.1 ms at most in vain: replies are processed soon, at the
/// price of processor time.
public struct LarderClient: Sendable {
  let core: ClientCore
  private let timeout: UInt64

  /// Creates a client. It does not connect before the first call.
  /// - Parameter address: `unix:/path/to.sock` or `tcp:HOST:PORT`, with an IPv6 host in square brackets. For
  ///   `tls:HOST:PORT`, see the module `LarderTLS`.
  /// - Throws: `illegalArgument` if the text is not an address, `failed` if the process can't open more descriptors.
  public init(_ address: String, configuration: Configuration = Configuration()) throws(LarderError) {
    try self.init([address], configuration: configuration)
  }

  /// Creates a client of servers that share stores (the engine `replicated`). One server at a time serves each store. The
  /// client does not connect before the first call.
  ///
  ///     let larder = try LarderClient(["unix:/run/a.sock", "tcp:127.0.0.1:7411"])
  ///
  /// Each call goes to the server that serves its store. If that server dies, the client finds the one that takes over:
  /// it repeats reads, and calls that were not executed, until their timeout, and resumes watches where they stopped. Set
  /// a timeout longer than the servers' lease (3 s by default). Calls that concern no store go to any server.
  /// - Parameter addresses: 1 to 8 addresses, each as in `init(_:configuration:)`.
  /// - Throws: `illegalArgument` if a text is not an address, or there are none or too many; `failed` if the process
  ///   can't open more descriptors.
  public init(_ addresses: [String], configuration: Configuration = Configuration()) throws(LarderError) {
    try self.init(servers: addresses.map { (address: $0, makeLayer: nil) }, configuration: configuration)
  }

  /// Creates a client whose connections have a layer between them and their sockets.
  /// - Parameter makeLayer: Makes the layer of each connection's channel; nil for plain connections.
  package init(
    _ address: String, configuration: Configuration = Configuration(), makeLayer: ChannelLayerFactory?
  ) throws(LarderError) {
    try self.init(servers: [(address: address, makeLayer: makeLayer)], configuration: configuration)
  }

  /// Creates a client of servers whose connections have a layer between them and their sockets.
  /// - Parameter servers: The addresses, each with what makes the layer of its connections' channels; nil for plain
  ///   connections.
  package init(
    servers: [(address: String, makeLayer: ChannelLayerFactory?)], configuration: Configuration = Configuration()
  ) throws(LarderError) {
    guard (1...8).contains(servers.count) else {
      throw LarderError(.illegalArgument, outcome: .rejected, "a client has 1 to 8 addresses, not \(servers.count)")
    }
    var parsed: [(address: Address, makeLayer: ChannelLayerFactory?)] = []
    for (text, makeLayer) in servers {
      let address: Address
      do { address = try Address(text) } catch {
        throw LarderError(.illegalArgument, outcome: .rejected, error.description)
      }
      if address.isEncrypted, makeLayer == nil {
        throw LarderError(
          .illegalArgument, outcome: .rejected,
          "\(text) is encrypted: import LarderTLS and pass tls:, as in LarderClient(address, tls: .system)")
      }
      try configuration.checkToken(for: address)
      parsed.append((address, makeLayer))
    }
    do { core = try ClientCore(parsed, configuration) } catch {
      throw LarderError(.failed, outcome: .notExecuted, "can't create a client: \(error)")
    }
    timeout = configuration.timeout.wholeMilliseconds
  }

  private init(_ core: ClientCore, timeout: UInt64) {
    self.core = core
    self.timeout = timeout
  }

  /// Returns the same client with another timeout for its calls. It covers connecting, waiting for earlier requests,
  /// and the reply.
  public func with(timeout: Duration) -> LarderClient {
    LarderClient(core, timeout: timeout.wholeMilliseconds)
  }

  /// Returns a store of the server by its name. Nothing is sent before the first call, which fails if there is no such
  /// store.
  ///
  /// A client can use any number of stores; it opens and closes them at the server as needed. It remembers each name.
  public func store(_ name: String) -> RemoteStore {
    RemoteStore(core, core.store(name), timeout: timeout)
  }

  /// Closes the connections at once. Calls in progress, and all later calls, fail with `closed`.
  public func close() {
    core.close()
  }

  /// Refuses new calls, waits until the calls in progress are done (within their timeouts), and closes the connections.
  public func shutdown() async {
    await core.shutdown()
  }

  /// The name and version that the server's hello gives; nil before the first connection. It may be any text.
  package var serverName: String? { core.serverName }

  // MARK: The server

  private func call<Q: ServerRequest>(_ request: Q) async throws(LarderError) -> CallResult {
    let (reply, _) = await core.reply(to: request, store: nil, deadline: CallDeadline(timeout: timeout))
    if case .failed(let error, _) = reply { throw error }
    return reply
  }

  /// Returns the reply to a request that is answered in JSON.
  private func report<Q: ServerRequest>(_ request: Q) async throws(LarderError) -> JSONValue {
    let body = try await call(request).body
    guard let json = try? JSONValue(parsing: body.span) else { throw .malformedReply }
    return json
  }

  /// Checks that the server responds.
  public func ping() async throws(LarderError) {
    _ = try await call(PingRequest())
  }

  /// Returns the server's figures by their names, which end in their units if they have one.
  public func stats() async throws(LarderError) -> [String: UInt64] {
    try figures(await call(StatsRequest()))
  }

  /// Returns the latest periods in which the server was slow, the latest first.
  public func slowLog() async throws(LarderError) -> [SlowLogEntry] {
    let body = try await call(SlowLogRequest()).body
    guard let entries = unsafe SlowLogRecord.decode(body.span.bytes) else { throw .malformedReply }
    return entries.map { SlowLogEntry($0) }
  }

  /// Returns the server's connections with the most requests per second, in descending order.
  /// - Parameter limit: The maximum number of connections; the server returns no more than 256.
  public func busiestConnections(limit: Int = 256) async throws(LarderError) -> [ConnectionDescription] {
    let body = try await call(ConnectionsRequest(limit: UInt32(clamping: limit))).body
    guard let connections = unsafe ConnectionStatistics.decode(body.span.bytes) else { throw .malformedReply }
    return connections.map { ConnectionDescription($0) }
  }

  /// Returns who this client is to the server, and what it may do.
  public func identity() async throws(LarderError) -> ClientIdentity {
    guard let identity = ClientIdentity(try await report(WhoamiRequest())) else { throw .malformedReply }
    return identity
  }

  /// Asks what would happen if a client asked for an operation: `Protocol/wire.md` §6.14.
  /// - Parameter question: An object with the client, the operation, and what it is about.
  /// - Returns: An object for each socket that the client can connect to.
  /// - Throws: `illegalArgument` if the question makes no sense.
  package func checkRules(_ question: JSONValue) async throws(LarderError) -> [JSONValue] {
    let report = try await report(RulesCheckRequest(question: question.encoded()))
    guard let decisions = report.array else { throw .malformedReply }
    return decisions
  }

  /// Returns the tokens that the server accepts, and when each was last used: `Protocol/wire.md` §6.14.
  package func tokens() async throws(LarderError) -> [JSONValue] {
    guard let tokens = try await report(TokenListRequest()).array else { throw .malformedReply }
    return tokens
  }

  /// Returns where the server's console is, with a link that gives a browser the rights of this client, once, unless every
  /// client has all rights: `Protocol/wire.md` §6.14.
  /// - Throws: `illegalArgument` if the server has no console.
  package func consoleLink() async throws(LarderError) -> JSONValue { try await report(ConsoleLinkRequest()) }

  /// Returns the servers that share stores with this one, and who serves these, an object for each database:
  /// `Protocol/wire.md` §6.15.
  package func cluster() async throws(LarderError) -> [JSONValue] {
    guard let databases = try await report(ClusterRequest()).array else { throw .malformedReply }
    return databases
  }

  /// Hands a store with the engine `replicated` over to another server. The calls on it wait meanwhile if the client knows
  /// that server, too, and so do those of others.
  /// - Parameter node: The other server's name, its setting `cluster.node`.
  /// - Throws: `notLeader` if another server serves the store; `illegalArgument` if there is no such server, or the store
  ///   has another engine.
  public func moveStore(_ name: String, to node: String) async throws(LarderError) {
    guard name.utf8.count <= 128 else {
      throw LarderError(
        .illegalArgument, outcome: .rejected, "the store's name has \(name.utf8.count) bytes; use 128 at most")
    }
    _ = try await call(StoreMoveRequest(body: NamedStoreRequest(name: name, argument: node)))
  }

  /// Returns the server's stores that this client may read at least in part, sorted by name. A client of several servers
  /// asks all of them, and returns the stores of those that reply.
  /// - Throws: The error of the last server if none replies.
  public func stores() async throws(LarderError) -> [StoreDescription] {
    let replies = try await core.replies(to: StoreListRequest(), deadline: CallDeadline(timeout: timeout))
    var stores: [StoreDescription] = []
    for reply in replies {
      guard let listed = unsafe ListedStore.decode(reply.body.span.bytes) else { throw .malformedReply }
      for store in listed where !stores.contains(where: { $0.name == store.name }) {
        stores.append(StoreDescription(name: store.name, specification: store.specification, entries: store.entries))
      }
    }
    return replies.count == 1 ? stores : stores.sorted { $0.name < $1.name }
  }

  /// Creates a store.
  /// - Parameters:
  ///   - name: 1 to 128 ASCII letters, digits, `.`, `_` and `-`. The first one is a letter, a digit or `_`.
  ///   - engine: The engine that keeps the store: `memory`, with an optional limit beyond which entries are evicted, as
  ///     in `memory?limit=256MiB`; or `log` or `directory`, with an optional durability, as in
  ///     `log?durability=interval:1s`. The latter two survive the server, which must have a data directory.
  /// - Throws: `storeExists` if there is a store with that name.
  public func createStore(_ name: String, engine: String = "memory") async throws(LarderError) {
    guard name.utf8.count <= 128 else {
      throw LarderError(
        .illegalArgument, outcome: .rejected, "the store's name has \(name.utf8.count) bytes; use 128 at most")
    }
    _ = try await call(StoreCreateRequest(body: NamedStoreRequest(name: name, argument: engine)))
  }

  /// Drops a store and all its entries, for every client.
  /// - Throws: `storeUnknown` if there is no store with that name.
  public func dropStore(_ name: String) async throws(LarderError) {
    _ = try await call(StoreDropRequest(name: name))
  }
}

/// Decodes the figures of a stats reply.
func figures(_ reply: CallResult) throws(LarderError) -> [String: UInt64] {
  guard let figures = unsafe Figure.decode(reply.body.span.bytes) else { throw .malformedReply }
  return Dictionary(figures.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
}

extension LarderClient {
  /// The behavior of a client. The defaults suit a server on the same machine or network.
  public struct Configuration: Sendable {
    /// How long a call may take in all: connecting, waiting for earlier requests, and the reply. See also
    /// `with(timeout:)`.
    public var timeout: Duration = .seconds(5)
    /// The number of connections that calls are spread over, 1 to 64. One connection carries the calls of many tasks.
    /// Updates and deletions of all documents that match, and batches with more than 64 updates, use one more
    /// connection, because the server executes a connection's requests in their order, and these may take long.
    public var connections = 1
    /// The client's name in the server's logs, up to 255 bytes. A longer name is cut.
    public var name = "larder-swift"
    /// The token by which the client proves to the server who it is; nil for none. `larder token create` makes tokens.
    /// Servers accept them from other machines only with TLS, so the client doesn't send them without it.
    public var token: String?
    /// Whether the client repeats a call that only reads if its connection is lost before the reply.
    public var retriesReads = true
    /// Whether calls wait, within their timeouts, while the client can't connect. If not, they fail with the first
    /// attempt.
    public var waitsForConnection = true
    /// The pauses between attempts to connect.
    public var backoff = Backoff()
    /// How long one attempt to connect may take, including the server's hello.
    public var connectTimeout: Duration = .seconds(5)
    /// How long a server that owes replies may send nothing until the client gives the connection up.
    public var silenceLimit: Duration = .seconds(15)
    /// The bytes of each reply stream that the server may send ahead of its reader, at least 65,536.
    public var streamCreditBytes = 262_144
    /// The maximum size of a frame that the client sends or accepts, in bytes, at least 4,096. The server may allow
    /// less.
    public var maxFrameBytes = 64 << 20
    /// What the client notifies of its calls and connections, in this order: for logs, metrics and traces. See the
    /// module `LarderObservability`.
    public var observers: [any ClientObserver] = []

    public init() {}

    /// Checks that the token can be sent to an address.
    fileprivate func checkToken(for address: Address) throws(LarderError) {
      guard let token else { return }
      if token.utf8.count > ClientHello.maxTokenSize {
        throw LarderError(
          .illegalArgument, outcome: .rejected, "a token has at most \(ClientHello.maxTokenSize) bytes")
      }
      if case .tcp = address, address.isNumericAndRemote {
        throw LarderError(
          .illegalArgument, outcome: .rejected,
          "\(address) is not encrypted, and everyone on the way could read the token: use a tls: address")
      }
    }

    var connectionCount: Int { min(64, max(1, connections)) }

    /// The configuration of the connections to one of several servers: a call doesn't wait for a server that another one
    /// may stand in for.
    var forOneOfSeveralServers: Configuration {
      var configuration = self
      configuration.waitsForConnection = false
      configuration.connectTimeout = min(connectTimeout, .seconds(1))
      configuration.backoff.cap = min(backoff.cap, .milliseconds(200))
      return configuration
    }

    var credit: Int { min(1 << 30, max(65_536, streamCreditBytes)) }
    var maxFrameSize: Int { min(1 << 31, max(4_096, maxFrameBytes)) }

    var helloName: String {
      var name = name[...]
      while name.utf8.count > ClientHello.maxNameSize { name.removeLast() }
      return String(name)
    }
  }
}
