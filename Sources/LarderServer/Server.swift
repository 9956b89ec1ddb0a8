import Basics
import Dispatch
import Platform
import Storage

/// A running server: listening sockets, workers, stores. It runs until `stop`.
package final class Server: Sendable {
  /// What a hello's reply says.
  package static let name = "larderd/\(softwareVersion)"

  /// The addresses that are listened on, with the ports that were really bound: of the passed sockets first.
  package var addresses: [Address] { listeners.map(\.address) }
  /// Where metrics are served.
  package var metricsAddresses: [Address] { metrics.map(\.address) }
  /// The sockets that are listened on, in the same order.
  package let listeners: [Listener]
  private let state: ServerState
  private let workers: [Worker]
  private let acceptors: Lock<[Acceptor]?>
  private let metrics: [MetricsListener]
  private let housekeeping: Housekeeping

  /// Makes the stores, binds all addresses and begins to serve.
  /// - Throws: `StorageError` for a store that can't be made, `ListenError` for an address, `AccessError` for a rule, `InheritedSocketError`
  ///   for a socket that was passed, `ExposureError` for one that other machines reach, `SystemError` when the system has no descriptors left.
  /// - Parameter stores: stores that were opened already; the server closes them when it stops.
  package init(_ configuration: ServerConfiguration, serving stores: [Store] = []) throws {
    var configuration = configuration
    let data = try configuration.dataPath.map { try DataDirectory.open($0) }
    let state = ServerState(
      limits: configuration.limits, workerCount: configuration.workers, data: data,
      tellRefusal: configuration.tellRefusal)
    for store in stores { try state.stores.adopt(store) }
    var metrics: [MetricsListener] = []
    do {
      for socket in configuration.metricsSockets {
        metrics.append(try MetricsListener(configuration.adopt(socket), state))
      }
      if let address = configuration.metrics {
        metrics.append(try MetricsListener(configuration.open(address), state))
      }
      try state.stores.openAll(configuration.tellOpening, progress: configuration.tellProgress)
      try state.stores.ensureAll(configuration.stores.map { ($0.name, $0.specification) })
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
          Acceptor(listener, number: acceptors.count, name: socket.name, server: state, workers: workers))
      }
      for address in configuration.addresses {
        let listener = try configuration.open(address)
        acceptors.append(Acceptor(listener, number: acceptors.count, server: state, workers: workers))
      }
      state.change(try AccessPolicy(configuration.accessRules, listeners: acceptors.map(\.listener)))
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
    housekeeping = Housekeeping(state)
    state.readiness.store(.ready, ordering: .releasing)
  }

  /// The sockets that let nobody in, for there are rules and none of them is for these.
  package var closedListeners: [Listener] { state.access.closedListeners }

  /// Changes a server that runs: all of it or, if a store can't be made or a rule is for no socket, nothing. When it returns, no request is
  /// served any more by what was in force before.
  /// - Parameters:
  ///   - stores: those of them that are missing are made.
  ///   - limits: whose `maxFrameBytes`, `openStores`, `requestsInFlight` and `keysInRequest` are as before, for clients know them.
  ///   - rules: who may do what; clients that are connected lose what they may no longer do.
  package func change(
    stores: [ServerConfiguration.NamedStore], limits: ServerLimits, rules: [AccessRule]
  ) throws {
    let access = try AccessPolicy(rules, listeners: listeners)
    let before = state.limits
    state.change(limits)
    do throws(StorageError) { try state.stores.ensureAll(stores.map { ($0.name, $0.specification) }) } catch {
      state.change(before)
      throw error
    }
    state.change(access)
    let taken = DispatchGroup()
    for worker in workers {
      taken.enter()
      worker.changeLimits()
      worker.probe { taken.leave() }
    }
    // A worker that hangs serves nobody, and is the watchdog's.
    _ = taken.wait(timeout: .now() + 10)
  }

  /// Asks every thread that serves to answer: the acceptors', the workers', the journals'.
  /// - Parameter answered: called once when all have, from any thread.
  package func probe(_ answered: @escaping @Sendable () -> Void) -> Probe {
    var parts: [(name: String, ask: (@escaping @Sendable () -> Void) -> Void)] = [("the acceptor", Acceptor.probe)]
    for (index, worker) in workers.enumerated() { parts.append(("worker \(index)", worker.probe)) }
    for store in state.stores.list() {
      if let commitWriter = store.commitWriter { parts.append(("the journal of \(store.name)", commitWriter.probe)) }
    }
    let probe = Probe(parts.map(\.name), answered)
    for (index, part) in parts.enumerated() { part.ask { probe.answer(index) } }
    return probe
  }

  /// Stops accepting, answers what has come, gives open answers their time (`shutdownTimeout`) and calls `done`.
  package func stop(_ done: @escaping @Sendable () -> Void) {
    state.readiness.store(.stopping, ordering: .releasing)
    housekeeping.stop()
    for acceptor in acceptors.withLock({ $0.take() }) ?? [] { acceptor.stop() }
    for worker in workers { worker.beginDrain() }
    DispatchQueue.global().async { [workers, state, metrics] in
      for worker in workers { worker.waitUntilDrained() }
      state.stores.close()
      for listener in metrics { listener.stop() }
      state.refusals.tellLeftOut()
      done()
    }
  }
}
