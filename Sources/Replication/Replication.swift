import Dispatch
import Platform
import Storage

/// The replicated stores of a server: those that it serves, and those that it takes over when their servers die.
package final class Replication: SharedStores {
  /// A database, and this server's part in the cluster of servers that use it.
  package final class Database: Sendable {
    package let name: DatabaseName
    let log: any SharedLog
    let membership: Membership
    private let heartbeat: Heartbeat

    /// - Parameters:
    ///   - node: The server's name in the cluster.
    ///   - address: Where its clients connect.
    ///   - lease: How long it may answer reads after a beat, in milliseconds.
    package init(_ name: DatabaseName, _ log: any SharedLog, node: String, address: String, lease: UInt64) {
      (self.name, self.log) = (name, log)
      membership = Membership(node, address: address, lease: lease, in: log)
      heartbeat = Heartbeat(membership)
    }

    fileprivate func leave() {
      heartbeat.stop()
      membership.leave()
    }
  }

  private let databases: [Database]

  package init(_ databases: [Database]) { self.databases = databases }

  /// The engine of the stores.
  package var engine: EngineKind {
    EngineKind.replicated.opening { [self] store, map, progress in
      try opener(for: store.specification).open(store, into: &map, progress: progress)
    } removing: { [self] name, specification in
      try remove(name, specification)
    }
  }

  private func database(of specification: StoreSpecification) throws(StorageError) -> Database {
    let name: DatabaseName? = specification.value(of: EngineOption.database.name)
    guard let database = databases.first(where: { $0.name == name }) else {
      let known = databases.map(\.name.description).joined(separator: ", ")
      throw .invalidOption("this server has no database \"\(name?.description ?? "")\"; it has \(known)")
    }
    return database
  }

  private func opener(for specification: StoreSpecification) throws(StorageError) -> StoreOpener {
    let database = try database(of: specification)
    guard let life = database.membership.life else {
      throw .engineUnavailable("this server has not joined the cluster of the database \(database.name)")
    }
    return StoreOpener(log: database.log, membership: database.membership, life: life)
  }

  private func remove(_ name: StoreName, _ specification: StoreSpecification) throws {
    let database = try database(of: specification)
    guard let state = try database.log.stores().first(where: { $0.name == name.text }) else { return }
    let leadership = Leadership(store: state.id, epoch: state.epoch, position: 0)
    guard let life = database.membership.life, state.leader == life.node, try database.log.drop(leadership) else {
      throw StorageError.servedElsewhere(name, "another server has taken it over")
    }
  }

  package func survey(serving served: Set<StoreName>) -> SharedStoreSurvey {
    var survey = SharedStoreSurvey()
    for database in databases {
      do { try self.survey(database, serving: served, into: &survey) } catch {
        survey.failure = "database \(database.name): \(error)"
      }
    }
    return survey
  }

  private func survey(
    _ database: Database, serving served: Set<StoreName>, into survey: inout SharedStoreSurvey
  ) throws {
    try database.membership.join()
    let live = try database.membership.liveNodes()
    let own = database.membership.life?.node
    for state in try database.log.stores() {
      guard let name = try? StoreName(state.name), !served.contains(name) else { continue }
      if let leader = state.leader, leader != own, let node = live[leader] {
        survey.elsewhere[name] = "the node \(node.name) serves it, at \(node.address)"
        continue
      }
      do {
        let specification = try StoreSpecification(state.specification, engines: [engine])
        guard try self.database(of: specification) === database else {
          throw StorageError.invalidOption(
            "the server that created it has another name for the database \(database.name): \(state.specification)")
        }
        survey.toOpen.append(StoreDescription(name: name, specification: specification))
      } catch {
        survey.elsewhere[name] = "\(error)"
      }
    }
  }

  /// Leaves all clusters. The server's stores are closed.
  package func leave() { for database in databases { database.leave() } }
}

/// Shows that a node is alive, three times in each lease.
private final class Heartbeat: Sendable {
  private let membership: Membership
  private let stopping = DispatchSemaphore(value: 0)
  private let stopped = DispatchSemaphore(value: 0)

  init(_ membership: Membership) {
    self.membership = membership
    let interval = DispatchTimeInterval.milliseconds(Int(membership.leaseMilliseconds / 3))
    DispatchQueue(label: "larder.heartbeat", qos: .userInitiated).async { [membership, stopping, stopped] in
      while stopping.wait(timeout: .now() + interval) == .timedOut {
        // A failure lets the lease end, if the next beats fail, too.
        try? membership.beat()
      }
      stopped.signal()
    }
  }

  func stop() {
    stopping.signal()
    stopped.wait()
  }
}
