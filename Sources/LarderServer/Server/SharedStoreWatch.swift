import Dispatch
import Documents
import Platform
import Storage

/// Watches the stores that this server shares with others: takes over those of servers that have died, and gives up those
/// that others have taken over.
final class SharedStoreWatch: Sendable {
  /// The pause between two looks at the stores, in milliseconds.
  private static let pause = 100

  private let shared: any SharedStores
  private let state: ServerState
  /// The stores that are created unless they exist.
  private let wanted: [ServerConfiguration.NamedStore]
  private let onEvent: @Sendable (SharedStoreEvent) -> Void
  private let stopping = DispatchSemaphore(value: 0)
  private let stopped = DispatchSemaphore(value: 0)
  /// What was last reported about each store, and about all of them under nil, so that it is reported once.
  private let reported = Lock<[StoreName?: String]>([:])
  /// Why stores can't be followed, as last reported.
  private let followFailures = Lock<[StoreName: String]>([:])

  /// Looks at the stores once, and then again and again until `stop`.
  /// - Parameter stores: Those that the configuration names.
  init(
    _ shared: any SharedStores, of state: ServerState, creating stores: [ServerConfiguration.NamedStore],
    _ onEvent: @escaping @Sendable (SharedStoreEvent) -> Void
  ) {
    (self.shared, self.state, self.onEvent) = (shared, state, onEvent)
    wanted = stores.filter { $0.specification.engine == .replicated }
    look()
    DispatchQueue(label: "larder.shared-stores").async {
      while self.stopping.wait(timeout: .now() + .milliseconds(Self.pause)) == .timedOut { self.look() }
      self.stopped.signal()
    }
  }

  /// Stops watching. The stores stay.
  func stop() {
    stopping.signal()
    stopped.wait()
  }

  /// Tells the other servers that this one, whose stores are closed, serves no more.
  func leave() { shared.leave() }

  private func look() {
    let (lost, stopped, survey) = state.stores.update(from: shared) { name, opening in
      reported.withLock { _ = $0.removeValue(forKey: name) }
      onEvent(.opened(name, opening))
    } onFailure: { name, reason in
      report(reason, of: name)
    }
    if !lost.isEmpty || !stopped.isEmpty { state.storeWasDropped() }
    for name in lost { onEvent(.lost(name)) }
    for name in stopped { onEvent(.stopped(name)) }
    report(survey.failure, of: nil)
    reportFollowFailures(survey.followFailures)
    let status = ClusterStatus(report: JSONValue.array(survey.report).encoded(), failure: survey.failure)
    state.cluster.withLock { $0 = status }
    guard survey.failure == nil, survey.knowsAllStores else { return }
    for store in wanted {
      do throws(StorageError) { try state.stores.ensureAll([(store.name, store.specification)]) } catch {
        report("\(error)", of: store.name)
      }
    }
  }

  private func reportFollowFailures(_ failures: [StoreName: String]) {
    let previous = followFailures.withLock { current in
      defer { current = failures }
      return current
    }
    for (name, reason) in failures where previous[name] != reason {
      onEvent(.failure(name, "it can't follow it, and would have to read it first: \(reason)"))
    }
  }

  /// Reports a failure, or that it has ended, unless it was reported.
  private func report(_ failure: String?, of name: StoreName?) {
    let isNew = reported.withLock { reported in
      defer { reported[name] = failure }
      return reported[name] != failure
    }
    if isNew { onEvent(.failure(name, failure)) }
  }
}

/// What a server has last seen of the stores that it shares with others.
struct ClusterStatus: Sendable {
  /// The servers and their stores, as JSON.
  var report = Array("[]".utf8)
  /// Why a database could not be asked; nil if all could.
  var failure: String?
}

/// What happens to the stores that servers share.
package enum SharedStoreEvent: Sendable {
  /// This server serves the store now.
  case opened(StoreName, StoreOpening)
  /// Another server has taken the store over, or could have.
  case lost(StoreName)
  /// A store of this server was stopped, because a store in a database has its name.
  case stopped(StoreName)
  /// A store can't be opened for this reason, or, without a name, a database can't be asked. No reason means that it can
  /// again.
  case failure(StoreName?, String?)
}
