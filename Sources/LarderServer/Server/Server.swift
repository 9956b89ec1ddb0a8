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
  private let acceptors: Lock<[Acceptor]?>
  private let metrics: [MetricsListener]
  private let memoryMonitor: MemoryMonitor

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
    let state = ServerState(
      limits: configuration.limits, workerCount: configuration.workers, engines: configuration.engines, data: data,
      databases: RESPDatabases(configuration.databases), keyspaceEvents: configuration.keyspaceEvents,
      onRefusal: configuration.onRefusal)
    for store in stores { try state.stores.adopt(store) }
    var metrics: [MetricsListener] = []
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
      try state.stores.ensureAll(configuration.stores.map { ($0.name, $0.specification) })
      state.memory.setLimit(configuration.limits.memoryLimit?.bytes)
    } catch {
      for listener in metrics { listener.stop() }
      state.stores.close()
      throw error
    }
    var workers: [Worker] = []
    var acceptors: [Acceptor] = []
    do {
      for index in 0..<configuration.workers { workers.append(try Worker(index: index, server: state)) }
      for socket in configuration.sockets {
        let listener = try configuration.adopt(socket)
        acceptors.append(
          Acceptor(
            listener, number: acceptors.count, name: socket.name, ListenerProtocol(ofSocketNamed: socket.name),
            server: state, workers: workers))
      }
      for address in configuration.addresses {
        let listener = try configuration.listen(on: address)
        acceptors.append(
          Acceptor(
            listener, number: acceptors.count, configuration.protocols[address] ?? .native, server: state,
            workers: workers))
      }
      let policy = try AccessPolicy(configuration.accessRules, listeners: acceptors.map(\.listener))
      state.accessControl.change(policy)
    } catch {
      // Acceptors and workers keep themselves alive until they are stopped.
      for acceptor in acceptors { acceptor.stop() }
      for worker in workers { worker.beginDrain() }
      for listener in metrics { listener.stop() }
      state.stores.close()
      throw error
    }
    configuration.willServe()
    for acceptor in acceptors { acceptor.start() }
    listeners = acceptors.map(\.listener)
    self.state = state
    self.workers = workers
    self.acceptors = Lock(acceptors)
    self.metrics = metrics
    state.expiryTimer.start(state)
    memoryMonitor = MemoryMonitor(state)
    state.setReadiness(.ready)
  }

  /// The stores that are damaged and not served.
  package var damagedStores: [StoreName] { state.stores.damagedNames }

  /// The listeners that admit nobody, because there are access rules and none of them applies to these.
  package var closedListeners: [Listener] { state.accessControl.policy.closedListeners }

  /// Changes the running server. If a store can't be made or a rule applies to no listener, nothing changes. When it
  /// returns, no request is executed under the previous limits and rules any more.
  /// - Parameters:
  ///   - stores: stores to make unless they exist.
  ///   - limits: the new limits. `maxFrameBytes`, `maxOpenStores`, `maxRequestsInFlight` and `maxKeysPerRequest` must
  ///     not change, because clients know them.
  ///   - rules: the new access rules. Connected clients lose the rights that they no longer have.
  package func change(
    stores: [ServerConfiguration.NamedStore], limits: ServerLimits, rules: [AccessRule]
  ) throws {
    let policy = try AccessPolicy(rules, listeners: listeners)
    let previousLimits = state.limits
    state.change(limits)
    do throws(StorageError) { try state.stores.ensureAll(stores.map { ($0.name, $0.specification) }) } catch {
      state.change(previousLimits)
      throw error
    }
    // Some of them may be refused what they do at the moment.
    state.accessControl.findNames(of: state.registry.users, timeout: .milliseconds(100))
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

  /// Checks that every thread that serves clients responds: the acceptors', the workers' and the commit writers'. What
  /// jobs do is their own affair: no find makes the service manager restart the server.
  /// - Parameter completion: called once when all have responded, from any thread.
  func probe(_ completion: @escaping @Sendable () -> Void) -> Probe {
    var threads: [(name: String, probe: (@escaping @Sendable () -> Void) -> Void)] = [("the acceptor", Acceptor.probe)]
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
    for acceptor in acceptors.withLock({ $0.take() }) ?? [] { acceptor.stop() }
    for worker in workers { worker.beginDrain() }
    DispatchQueue.global().async { [workers, state, metrics] in
      for worker in workers { worker.waitUntilDrained() }
      // A client may have gone away while its request was executed.
      state.storeChanges.sync {}
      state.largeCommits.stop()
      state.stores.close()
      for listener in metrics { listener.stop() }
      state.accessControl.reportSuppressedRefusals()
      completion()
    }
  }
}
