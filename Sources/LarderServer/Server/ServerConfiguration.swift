import Platform
import Storage
import Wire

/// The configuration that a server starts with.
package struct ServerConfiguration: Sendable {
  /// A store that exists from the start.
  package struct NamedStore: Sendable {
    package let name: StoreName
    package let specification: StoreSpecification

    package init(_ name: StoreName, _ specification: StoreSpecification) {
      self.name = name
      self.specification = specification
    }

    /// - Parameters:
    ///   - specification: `ENGINE[?option=value&…]`
    ///   - engines: The engines of the server.
    package init(
      name: String, _ specification: String, engines: [EngineKind] = .builtIn
    ) throws(StorageError) {
      self.init(try StoreName(name), try StoreSpecification(specification, engines: engines))
    }
  }

  package var addresses: [Address]
  /// The protocols of those addresses whose clients don't just speak Larder's own protocol.
  package var protocols: [Address: ListenerProtocol] = [:]
  /// The stores of clients that select databases.
  package var databases: [RESPDatabase] = []
  /// The changes of keys that clients of databases can subscribe to.
  package var keyspaceEvents: RESPEventClasses = []
  /// Inherited sockets that are listening already, to be served in addition to `addresses`.
  package var sockets: [InheritedSocket] = []
  /// Sockets of `addresses` that an earlier process has opened and the service manager has kept.
  package var kept: [(address: Address, socket: InheritedSocket)] = []
  /// Asks the service manager to keep an open socket, under this name, for the next process; nil if there is no service
  /// manager.
  package var keep: (@Sendable (Int32, String) -> Void)?
  /// The access to the files of Unix sockets.
  package var access = ListeningSocket.FileAccess()
  /// Makes the layer of each encrypted connection, for the protocol of its listener; nil without a certificate.
  package var secureLayer: (@Sendable (_ applicationName: String?) -> (any ChannelLayer)?)?
  /// What is known of the certificates behind `secureLayer`.
  package var certificates = CertificateStatus()
  /// The tokens that are accepted.
  package var tokens = TokenTable()
  /// Whether to serve TCP sockets that other machines can reach, although there is neither encryption nor
  /// authentication.
  package var allowsInsecureTCP = false
  /// The access rules. Without any, every client may do everything.
  package var accessRules: [AccessRule] = []
  /// The roles that rules can name.
  package var accessRoles: [AccessRole] = []
  /// Called when a client is refused something, from any thread.
  package var onRefusal: @Sendable (RefusalLog.Event) -> Void = { _ in }
  package var auditing = AuditSettings()
  package var stores: [NamedStore] = []
  /// The engines that stores can have.
  package var engines: [EngineKind] = .builtIn
  /// The stores that this server shares with others; nil if it shares none.
  package var sharedStores: (any SharedStores)?
  /// Called for what happens to shared stores, from any thread.
  package var onSharedStores: @Sendable (SharedStoreEvent) -> Void = { _ in }
  /// The absolute path of the data directory; nil for a server without stores that one records.
  package var dataPath: String?
  /// Where the files of durable stores are.
  package var fileSystem: any FileSystem = LocalFileSystem()
  /// Called many times a second while stores are opened.
  package var onOpeningProgress: @Sendable (OpeningProgress) -> Void = { _ in }
  /// Called for each store that has been opened, with what was found.
  package var onStoreOpened: @Sendable (StoreName, StoreOpening) -> Void = { _, _ in }
  /// Called for each store or file in the data directory that is damaged and therefore not served, with its name and the
  /// reason.
  package var onStoreDamaged: @Sendable (String, String) -> Void = { _, _ in }
  /// A Boolean value that indicates whether the server refuses to start if anything in its data directory is damaged.
  package var isStrict = false
  /// Called once every store is open, before the first connection is accepted.
  package var willServe: @Sendable () -> Void = {}
  /// The number of workers. Each keeps a thread while it has connections.
  package var workers = 1
  /// Names by which clients of HTTP may know the server, besides those of loopback and those that it listens on.
  package var httpHosts: [String] = []
  /// The files that browsers get over HTTP.
  package var httpAssets: [HTTPAsset] = []
  /// The maximum number of threads for finds, aggregations and changes. All but one run only while nothing else wants their
  /// cores.
  package var findThreads = 2
  package var limits = ServerLimits()
  /// The address to serve metrics on over HTTP, in addition to `metricsSockets`; nil for none.
  package var metrics: Address?
  /// Inherited sockets that are listening already, to serve metrics on.
  package var metricsSockets: [InheritedSocket] = []

  package init(addresses: [Address]) {
    self.addresses = addresses
  }

  /// The stores from the start that no other server can serve.
  var ownStores: [NamedStore] { stores.filter { $0.specification.engine != .replicated } }
}

/// What the server accepts from its clients, and how long it waits for them. `Server.change` changes them while the
/// server runs.
package struct ServerLimits: Sendable {
  /// The maximum `length` of a frame, in bytes; 128 KiB to 1 GiB.
  package var maxFrameBytes = 16 << 20
  /// The maximum number of connections. One more gets an error and is closed.
  package var connections = 10_000
  /// The maximum number of connections of one user of Unix sockets, or of one host; nil for nine tenths of `connections`,
  /// so that no client can keep all others out.
  package var clientConnections: Int?
  /// The maximum number of stores.
  package var stores = 1_024
  /// The maximum number of stores that one connection has open; at most 65,535.
  package var maxOpenStores = 1_024
  /// The maximum number of unfinished requests of one connection, which are its open reply streams.
  package var maxRequestsInFlight = 1_024
  /// The maximum number of keys or entries in one request.
  package var maxKeysPerRequest = 65_536
  /// The maximum number of keys that the open get-many streams of one connection have left to send.
  package var maxStreamKeys = 262_144
  /// The size of a store's latest changes, in bytes, that are kept while it is watched, in addition to those of its
  /// last commit.
  package var maxChangeFeedBytes = 16 << 20
  /// The maximum resident memory of the process; nil for none. Stores are opened whatever they need.
  package var memoryLimit: MemoryLimit?
  /// The memory, in bytes, that open replies of all clients keep of what has been overwritten or deleted since they
  /// began. Beyond it, the oldest ones of a store that is written end with an error.
  package var maxSnapshotBytes = 256 << 20
  /// The size of the replies waiting for one client, in bytes, at which no more of its requests are read. One reply may
  /// exceed it.
  package var maxOutputBytes = 1 << 20
  /// The size of the replies waiting for all clients, in bytes, at which the client that has stalled longest is
  /// disconnected.
  package var maxTotalOutputBytes = 256 << 20
  /// The maximum memory of all clients' incomplete requests, in bytes, and that of their uploads. Beyond it, the client
  /// that has most is disconnected with an error, or loses an upload. Until its worker has released that memory, the
  /// total can exceed the limit by as much.
  package var maxTotalInputBytes = 512 << 20

  /// The maximum number of finds, aggregations and changes of matching documents of all clients that are at work or wait
  /// for their turn. One connection may have a quarter of them. Beyond it, the client that has most is refused.
  package var finds = 64
  /// The maximum number of entries that one of them may examine.
  package var findDocuments = 10_000_000
  /// The maximum memory, in bytes, of what one of them keeps: handles, sort keys, groups, and new values.
  package var findMemory = 64 << 20
  /// The maximum memory, in bytes, of what all of them have found and is not sent yet. Beyond it, replies of whoever has
  /// most end with an error.
  package var maxResultBytes = 256 << 20
  /// How long one of them may take, without the time that it waits for others.
  package var findTime: Duration = .seconds(2)
  /// How long it may take if its request asks for more.
  package var maxFindTime: Duration = .seconds(60)

  /// The maximum number of TLS handshakes under way. Beyond it, the address that has most of them loses its oldest.
  package var handshakes = 1_024
  /// How long a new connection may take for its TLS handshake, and then to send its hello.
  package var helloTimeout: Duration = .seconds(5)
  /// How long a connection may stall in the middle of a frame.
  package var frameTimeout: Duration = .seconds(30)
  /// How long a client may take to send one frame, however many bytes arrive meanwhile.
  package var frameTime: Duration = .seconds(300)
  /// How long an upload may take, however many parts arrive meanwhile.
  package var uploadTime: Duration = .seconds(1_800)
  /// How long a client may leave its replies unread.
  package var writeTimeout: Duration = .seconds(30)
  /// How long a reply stream waits for credit.
  package var streamTimeout: Duration = .seconds(30)
  /// How long a connection may be idle.
  package var idleTimeout: Duration = .seconds(3_600)
  /// How long open reply streams may continue after the server was asked to stop.
  package var shutdownTimeout: Duration = .seconds(5)

  /// The duration at which a wakeup is put into the slow log.
  package var slowThreshold: Duration = .milliseconds(10)

  package init() {}

  /// Returns the limits for a find that asks for some time, in milliseconds; nil for the default. A find that asks for
  /// more than the maximum gets the maximum.
  func withFindTime(_ milliseconds: UInt32?) -> ServerLimits {
    guard let milliseconds else { return self }
    var limits = self
    limits.findTime = min(.milliseconds(Int(milliseconds)), max(findTime, maxFindTime))
    return limits
  }

  /// Where a find learns how it can take longer, for messages.
  var findTimeSetting: String {
    findTime < maxFindTime
      ? "limits.find-time; a request can ask for up to \(maxFindTime), limits.max-find-time" : "limits.max-find-time"
  }

  /// The maximum number of connections of one user or host.
  var connectionsOfClient: Int { clientConnections ?? max(1, connections - connections / 10) }

  /// The maximum size of the body of a frame, in bytes, and so of one record of a reply.
  var maxBodyBytes: Int { maxFrameBytes - Frame.minLength }

  /// The maximum size of a value, in bytes: its entry record fits into the largest frame together with the longest key.
  var maxValueBytes: Int { maxFrameBytes - 8_192 }
}

// MARK: Listening

extension ServerConfiguration {
  /// Listens on an address, on the socket that was kept for it if there is one. A kept socket is used only once.
  mutating func listen(on address: Address, forMetrics isForMetrics: Bool = false) throws -> ListeningSocket {
    if let index = kept.firstIndex(where: { $0.address == address }) {
      let listener = try ListeningSocket.resume(kept.remove(at: index).socket, at: address, access: access)
      try checkExposure(of: listener, address, isForMetrics)
      return listener
    }
    let listener = try ListeningSocket.open(address, access: access, removesFile: keep == nil)
    try checkExposure(of: listener, address, isForMetrics)
    keep?(listener.descriptor.number, listener.preservedName)
    return listener
  }

  /// Takes over an inherited socket.
  func adopt(_ socket: InheritedSocket, forMetrics isForMetrics: Bool = false) throws -> ListeningSocket {
    let listener = try ListeningSocket.adopt(socket)
    if socket.isEncrypted, case .unix = listener.address {
      throw InheritedSocketError(
        socket,
        "its name stands for TLS, which Unix sockets don't have; set FileDescriptorName= to clients, resp or http")
    }
    try checkExposure(of: listener, socket.isEncrypted ? listener.address.encrypted : listener.address, isForMetrics)
    return listener
  }

  /// Returns the protocol of a listener, over TLS if its address says so.
  func spoken(_ listener: ListenerProtocol, at address: Address) throws(SecurityError) -> ListenerProtocol {
    guard address.isEncrypted else { return listener }
    guard let secureLayer else { throw SecurityError(address: address) }
    let name = listener.applicationName
    return listener.over { secureLayer(name) }
  }

  /// Checks the address that was actually bound, because a host name says little.
  private func checkExposure(
    of listener: borrowing ListeningSocket, _ address: Address, _ isForMetrics: Bool
  ) throws(ExposureError) {
    guard listener.isLocal || allowsInsecureTCP || (address.isEncrypted && !isForMetrics) else {
      throw ExposureError(address: listener.address, isForMetrics: isForMetrics)
    }
  }
}

/// The error for an encrypted address of a server without a certificate.
package struct SecurityError: Error, Equatable, Sendable, CustomStringConvertible {
  private let address: Address

  package init(address: Address) { self.address = address }

  package var description: String {
    "\(address) needs a certificate and its private key: set tls.certificates and tls.keys"
  }
}

/// The error for an address that other machines can reach, on a server that was not configured to accept that risk.
package struct ExposureError: Error, Equatable, Sendable, CustomStringConvertible {
  private let address: Address
  private let isForMetrics: Bool

  /// - Parameter isForMetrics: Whether metrics are served at the address, and not clients.
  package init(address: Address, isForMetrics: Bool = false) {
    (self.address, self.isForMetrics) = (address, isForMetrics)
  }

  package var description: String {
    if isForMetrics {
      return """
        \(address) can be reached from other machines, and everyone there could read the metrics, which have the names of \
        stores: use a loopback address, or pass --insecure-tcp if that is acceptable
        """
    }
    return """
      \(address) can be reached from other machines, and TCP has neither encryption nor authentication: use TLS \
      (\(address.encrypted)), listen on a loopback address, or pass --insecure-tcp if everyone who can reach it may read \
      and change everything
      """
  }
}
