import Basics
import Dispatch
import Platform
import Storage

/// A running server: its listeners, workers and stores. It runs until `stop`.
///
/// Used by any thread. Starting and stopping wait for other threads; serving happens on the workers' threads.
package final class Server: Sendable {
  /// The server's name in the reply to a hello.
  package static let name = "larderd/\(softwareVersion)"

  /// The addresses that the server listens on, with the ports that were bound: inherited sockets first.
  package var addresses: [Address] { listeners.map(\.address) }
  /// The addresses that metrics are served on.
  package var metricsAddresses: [Address] { metrics.map(\.address) }
  /// The sockets that the server listens on, in the order of `addresses`.
  package let listeners: [Listener]
  private let state: ServerState
  private let workers: [Worker]
  /// Completes the handshakes of encrypted connections; nil if no listener has any.
  private let handshaker: Handshaker?
  private let acceptors: Lock<[Acceptor]?>
  private let metrics: [MetricsListener]
  private let memoryMonitor: MemoryMonitor
  private let sharing: SharedStoreWatch?

  /// Opens the stores, binds all addresses and begins to serve.
  /// - Throws: `StorageError` for a store that can't be created, what is wrong with a store that can't be opened if the
  ///   configuration is strict, `DataDirectoryError`, `ListenError` for an address, `AccessError` for an
  ///   access rule, `InheritedSocketError` for an inherited socket, `ExposureError` for a socket that other machines
  ///   can reach, and `SystemError` when the system has no descriptors left.
  /// - Parameter stores: stores that are open already. The server closes them when it stops.
  package init(_ configuration: ServerConfiguration, serving stores: [Store] = []) throws {
    var configuration = configuration
    let data = try configuration.dataPath.map {
      try DataDirectory.open($0, on: configuration.fileSystem, engines: configuration.engines)
    }
    // HTTP has a worker of its own, so that no other client waits for it.
    let workerCount = configuration.workers + (configuration.servesHTTP ? 1 : 0)
    let state = ServerState(
      limits: configuration.limits, workerCount: workerCount,
      findThreadCount: configuration.findThreads, engines: configuration.engines, data: data,
      sharing: configuration.sharedStores, databases: RESPDatabases(configuration.databases),
      keyspaceEvents: configuration.keyspaceEvents, httpAssets: configuration.httpAssets,
      onRefusal: configuration.onRefusal, auditing: configuration.auditing)
    for store in stores { try state.stores.adopt(store) }
    var metrics: [MetricsListener] = []
    var sharing: SharedStoreWatch?
    do {
      for socket in configuration.metricsSockets {
        metrics.append(try MetricsListener(configuration.adopt(socket, forMetrics: true), state))
      }
      if let address = configuration.metrics {
        metrics.append(try MetricsListener(configuration.listen(on: address, forMetrics: true), state))
      }
      try state.stores.openAll(
        isStrict: configuration.isStrict, configuration.onStoreOpened, onDamage: configuration.onStoreDamaged,
        progress: configuration.onOpeningProgress)
      sharing = configuration.sharedStores.map { shared in
        SharedStoreWatch(shared, of: state, creating: configuration.stores, configuration.onSharedStores)
      }
      try state.stores.ensureAll(configuration.ownStores.map { ($0.name, $0.specification) })
      state.memory.setLimit(configuration.limits.memoryLimit?.bytes)
    } catch {
      for listener in metrics { listener.stop() }
      sharing?.stop()
      state.stores.close()
      sharing?.leave()
      throw error
    }
    var workers: [Worker] = []
    var acceptors: [Acceptor] = []
    var handshaker: Handshaker?
    func accept(
      from socket: consuming ListeningSocket, _ listener: Listener, _ spoken: ListenerProtocol
    ) throws {
      let spoken = try configuration.spoken(spoken, at: listener.address)
      if spoken.hasLayer, handshaker == nil { handshaker = try Handshaker(state) }
      if spoken.isHTTP { state.httpHosts.add(listener.address, alsoKnownAs: configuration.httpHosts) }
      acceptors.append(
        Acceptor(
          socket, number: acceptors.count, listener, spoken, server: state,
          workers: Array(spoken.isHTTP ? workers[configuration.workers...] : workers[..<configuration.workers]),
          handshaker: handshaker))
    }
    do {
      for index in 0..<workerCount { workers.append(try Worker(index: index, server: state)) }
      for socket in configuration.sockets {
        let listening = try configuration.adopt(socket)
        let spoken = ListenerProtocol(ofSocketNamed: socket.name)
        let address = socket.isEncrypted ? listening.address.encrypted : listening.address
        let listener = Listener(
          name: socket.name, address: address, speaking: spoken.name, isLocal: listening.isLocal)
        try accept(from: listening, listener, spoken)
      }
      for address in configuration.addresses {
        let listening = try configuration.listen(on: address)
        let spoken = configuration.protocols[address] ?? .native
        let listener = Listener(address: listening.address, speaking: spoken.name, isLocal: listening.isLocal)
        try accept(from: listening, listener, spoken)
      }
      let policy = try AccessPolicy(
        configuration.accessRules, roles: configuration.accessRoles, listeners: acceptors.map(\.listener),
        certificates: configuration.certificates,
        tokens: configuration.tokens)
      state.accessControl.change(policy)
    } catch {
      // Acceptors and workers keep themselves alive until they are stopped.
      for acceptor in acceptors { acceptor.stop() }
      handshaker?.stop()
      for worker in workers { worker.beginDrain() }
      for listener in metrics { listener.stop() }
      sharing?.stop()
      state.stores.close()
      sharing?.leave()
      throw error
    }
    configuration.willServe()
    for acceptor in acceptors { acceptor.start() }
    listeners = acceptors.map(\.listener)
    self.state = state
    self.workers = workers
    self.handshaker = handshaker
    self.acceptors = Lock(acceptors)
    self.metrics = metrics
    self.sharing = sharing
    state.expiryTimer.start(state)
    memoryMonitor = MemoryMonitor(state)
    state.setReadiness(.ready)
  }

  /// The stores that are damaged and not served.
  package var damagedStores: [StoreName] { state.stores.damagedNames }

  /// The listeners that admit nobody, because there are access rules and none of them applies to these.
  package var closedListeners: [Listener] { state.accessControl.policy.closedListeners }

  /// The listeners on which every user of the machine may do everything, because there are no access rules.
  package var unprotectedListeners: [Listener] { state.accessControl.policy.unprotectedListeners }

  /// Returns whether there is a store, which may be damaged.
  package func hasStore(_ name: StoreName) -> Bool {
    state.stores.damagedNames.contains(name) || state.stores.list().contains { $0.name == name }
  }

  /// Changes the running server. If a store can't be made or a rule applies to no listener, nothing changes. When it
  /// returns, no request is executed under the previous limits and rules any more.
  /// - Parameters:
  ///   - stores: stores to make unless they exist.
  ///   - limits: the new limits. `maxFrameBytes`, `maxOpenStores`, `maxRequestsInFlight` and `maxKeysPerRequest` must
  ///     not change, because clients know them.
  ///   - rules: the new access rules. Connected clients lose the rights that they no longer have.
  ///   - roles: the new roles.
  ///   - certificates: what is now known of certificates. Clients whose certificates are revoked are disconnected.
  ///   - tokens: the tokens that are now accepted. Clients with others lose the rights of these.
  package func change(
    stores: [ServerConfiguration.NamedStore], limits: ServerLimits, rules: [AccessRule],
    roles: [AccessRole] = [], certificates: CertificateStatus = CertificateStatus(), tokens: TokenTable = TokenTable()
  ) throws {
    let policy = try AccessPolicy(
      rules, roles: roles, listeners: listeners, certificates: certificates, tokens: tokens)
    let previousLimits = state.limits
    state.change(limits)
    do throws(StorageError) { try state.stores.ensureAll(stores.map { ($0.name, $0.specification) }) } catch {
      state.change(previousLimits)
      throw error
    }
    // Some of them may be refused what they do at the moment.
    state.accessControl.findNames(of: state.registry.users, timeout: .milliseconds(100))
    for event in tokens.changes(since: state.accessControl.policy.tokens) { record(event) }
    state.accessControl.change(policy)
    let updates = DispatchGroup()
    for worker in workers {
      updates.enter()
      worker.updateLimits()
      worker.probe { updates.leave() }
    }
    // A worker that hangs serves nobody. The watchdog deals with it.
    _ = updates.wait(timeout: .now() + 10)
  }

  /// Adds an event to the audit.
  package func record(_ event: AuditEvent) { state.accessControl.record(event) }

  /// Checks that every thread that serves clients responds: the acceptors', the workers' and the commit writers'. What
  /// jobs do is their own affair: no find makes the service manager restart the server.
  /// - Parameter completion: called once when all have responded, from any thread.
  func probe(_ completion: @escaping @Sendable () -> Void) -> Probe {
    var threads: [(name: String, probe: (@escaping @Sendable () -> Void) -> Void)] = [("the acceptor", Acceptor.probe)]
    if let handshaker { threads.append(("the handshaker", handshaker.probe)) }
    for (index, worker) in workers.enumerated() { threads.append(("worker \(index)", worker.probe)) }
    for store in state.stores.list() {
      if let commitWriter = store.commitWriter {
        threads.append(("the commit writer of \(store.name)", commitWriter.probe))
      }
    }
    let probe = Probe(threads.map(\.name), completion)
    for (index, thread) in threads.enumerated() { thread.probe { probe.didRespond(index) } }
    return probe
  }

  /// Stops accepting, answers what has arrived, gives open reply streams their time (`shutdownTimeout`), and calls
  /// `completion`.
  package func stop(_ completion: @escaping @Sendable () -> Void) {
    state.setReadiness(.stopping)
    state.expiryTimer.stop()
    state.events.stop()
    memoryMonitor.stop()
    sharing?.stop()
    for acceptor in acceptors.withLock({ $0.take() }) ?? [] { acceptor.stop() }
    handshaker?.stop()
    for worker in workers { worker.beginDrain() }
    DispatchQueue.global().async { [workers, state, metrics, sharing] in
      for worker in workers { worker.waitUntilDrained() }
      // A client may have gone away while its request was executed.
      state.storeChanges.sync {}
      state.largeCommits.stop()
      state.stores.close()
      sharing?.leave()
      for listener in metrics { listener.stop() }
      state.accessControl.finish()
      completion()
    }
  }
}
