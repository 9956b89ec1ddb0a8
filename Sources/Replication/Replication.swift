import Dispatch
import Documents
import Platform
import Storage

/// The replicated stores of a server: those that it serves, and those that it takes over when their servers die.
package final class Replication: SharedStores {
  /// A database, and this server's part in the cluster of servers that use it.
  package final class Database: Sendable {
    package let name: DatabaseName
    let log: any SharedLog
    let membership: Membership
    let follower: Follower
    fileprivate let cache: ValueCache
    /// Where snapshots are written, one after the other.
    fileprivate let queue = DispatchQueue(label: "larder.snapshots", qos: .utility)
    private let heartbeat: Heartbeat

    /// - Parameters:
    ///   - node: The server's name in the cluster.
    ///   - address: Where its clients connect.
    ///   - lease: How long it may answer reads after a beat, in milliseconds.
    ///   - valueCache: How many of the large values that are read from the database stay in memory, in bytes.
    package init(
      _ name: DatabaseName, _ log: any SharedLog, node: String, address: String, lease: UInt64,
      valueCache: Int = 64 << 20
    ) {
      (self.name, self.log, cache) = (name, log, ValueCache(byteCount: valueCache))
      membership = Membership(node, address: address, lease: lease, in: log)
      heartbeat = Heartbeat(membership)
      follower = Follower(membership, in: log, keepingValuesIn: cache, snapshotsOn: queue)
    }

    fileprivate func leave() {
      follower.stop()
      heartbeat.stop()
      membership.leave()
    }
  }

  private let databases: [Database]
  /// The stores that this server follows, and may take over; nil for all.
  private let patterns: [StorePattern]?
  private let state = Lock(State())

  /// How long a store that is to be led by a certain node waits for that, in milliseconds.
  private static let successionTime: UInt64 = 5_000
  /// How long a store that nobody leads waits for the node that it prefers, in milliseconds.
  private static let preferenceTime: UInt64 = 500

  private struct State {
    /// The engines of the stores that were opened here, by the stores' names.
    var engines: [StoreName: WeakEngine] = [:]
    /// When stores were first seen that nobody leads.
    var successions: [StoreState: UInt64] = [:]
    /// What was last seen of the stores that this server did not serve, by their databases.
    var known: [DatabaseName: [StoreName: StoreElsewhere]] = [:]
  }

  private struct WeakEngine {
    weak var engine: ReplicatedEngine?
  }

  /// - Parameter patterns: The stores that this server follows, and may take over; nil for all.
  package init(_ databases: [Database], sharing patterns: [StorePattern]? = nil) {
    (self.databases, self.patterns) = (databases, patterns)
  }

  private func shares(_ name: StoreName) -> Bool { patterns?.contains { $0.matches(name) } ?? true }

  /// The engine of the stores.
  package var engine: EngineKind {
    EngineKind.replicated.opening { [self] store, map, progress in
      let database = try database(of: store.specification)
      let engine = try opener(for: database).open(
        store, into: &map, following: database.follower.take, progress: progress)
      state.withLock { $0.engines[store.name] = WeakEngine(engine: engine) }
      return (engine, [])
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

  private func opener(for database: Database) throws(StorageError) -> StoreOpener {
    guard let life = database.membership.life else {
      throw .engineUnavailable("this server has not joined the cluster of the database \(database.name)")
    }
    return StoreOpener(
      log: database.log, membership: database.membership, life: life, keepingValuesIn: database.cache,
      upkeepOn: database.queue)
  }

  private func remove(_ name: StoreName, _ specification: StoreSpecification) throws {
    let database = try database(of: specification)
    guard let state = try database.log.stores().first(where: { $0.name == name.text }) else { return }
    let leadership = Leadership(store: state.id, epoch: state.epoch, position: 0)
    guard let life = database.membership.life, state.leader == life.node, try database.log.drop(leadership) else {
      throw StorageError.servedElsewhere(name, StoreElsewhere("another server has taken it over"))
    }
  }

  package func survey(serving served: Set<StoreName>, within budgets: StoreBudgets) -> SharedStoreSurvey {
    var survey = SharedStoreSurvey()
    for database in databases {
      var isUnavailable = false
      do { try self.survey(database, serving: served, within: budgets, into: &survey) } catch {
        isUnavailable = true
        survey.failure = "database \(database.name): \(error)"
      }
      // What was last seen of a database that can't be asked still holds, as far as this server knows.
      guard let known = state.withLock({ $0.known[database.name] }) else {
        survey.knowsAllStores = false
        continue
      }
      guard isUnavailable else { continue }
      survey.elsewhere.merge(known.filter { !served.contains($0.key) }) { current, _ in current }
    }
    return survey
  }

  /// Makes the server join the cluster of a database, if it can.
  /// - Returns: Why it can't yet.
  private func join(_ database: Database) throws -> Membership.JoinError? {
    do throws(Membership.JoinError) { try database.membership.join() } catch {
      if case .log = error { throw error }
      return error
    }
    return nil
  }

  private func survey(
    _ database: Database, serving served: Set<StoreName>, within budgets: StoreBudgets,
    into survey: inout SharedStoreSurvey
  ) throws {
    let obstacle = try join(database)
    let live = try database.membership.liveNodes()
    let own = database.membership.life?.node
    var stores: [JSONValue] = []
    var toFollow: [StoreID: Follower.Order] = [:]
    var elsewhere: [StoreName: StoreElsewhere] = [:]
    var known: [StoreName: StoreElsewhere] = [:]
    for state in try database.log.stores() {
      guard let name = try? StoreName(state.name) else { continue }
      let leader = state.leader.flatMap { live[$0] }
      var json: JSONValue = ["name": .string(state.name)]
      json["leader"] = leader.map { .string($0.name) }
      if let freshness = database.follower.store(state.id)?.freshness {
        json["staleness"] = .integer(Int64(clamping: freshness.staleness(at: monotonicMilliseconds())))
      }
      stores.append(json)
      let snapshotWriter = Placement.node(for: state.name, of: live.values.filter { $0.node != state.leader })
      engine(of: name)?.expectSnapshots(snapshotWriter != nil)
      guard !served.contains(name) else { continue }
      // A store that nobody leads is kept: this server may be its next leader.
      let isLedElsewhere = leader.map { $0.node != own } ?? false
      let isShared = shares(name)
      if isShared, isLedElsewhere || database.follower.store(state.id) != nil,
        let specification = try? specification(of: state, in: database)
      {
        toFollow[state.id] = Follower.Order(
          store: StoreDescription(name: name, specification: specification),
          writesSnapshots: own != nil && snapshotWriter?.node == own)
        survey.followFailures[name] = database.follower.failure(of: state.id)
      }
      if let leader, leader.node != own {
        // A leader of this server's name is an earlier life of it, or another server that has its name.
        if let obstacle, obstacle.isTemporary, leader.name == database.membership.name {
          elsewhere[name] = StoreElsewhere("\(obstacle)")
        } else {
          elsewhere[name] = StoreElsewhere(servedBy: leader)
        }
      } else if let successor = awaitedLeader(of: state, among: live), successor.node != own {
        elsewhere[name] = StoreElsewhere(
          "it is on its way to the node \(successor.name), at \(successor.address)", address: successor.address)
      } else if let obstacle {
        elsewhere[name] = StoreElsewhere("\(obstacle)")
      } else if !isShared, state.successor != own?.id {
        elsewhere[name] = StoreElsewhere("nobody serves it, and this server may not (cluster.stores)")
      } else {
        do {
          survey.toOpen.append(StoreDescription(name: name, specification: try specification(of: state, in: database)))
          known[name] = StoreElsewhere("nobody served it when its database last responded")
        } catch {
          elsewhere[name] = StoreElsewhere("\(error)")
        }
      }
    }
    survey.elsewhere.merge(elsewhere) { _, new in new }
    state.withLock { [known] in $0.known[database.name] = known.merging(elsewhere) { _, new in new } }
    if let obstacle { survey.failure = "database \(database.name): \(obstacle)" }
    database.follower.follow(toFollow, budgets)
    let nodes = live.values.sorted { $0.name < $1.name }.map { node -> JSONValue in
      ["name": .string(node.name), "address": .string(node.address), "lease": .integer(Int64(node.lease))]
    }
    survey.report.append([
      "database": .string(database.name.description), "node": .string(database.membership.name), "nodes": .array(nodes),
      "stores": .array(stores),
    ])
  }

  private func specification(of state: StoreState, in database: Database) throws(StorageError) -> StoreSpecification {
    let specification = try StoreSpecification(state.specification, engines: [engine])
    guard try self.database(of: specification) === database else {
      throw .invalidOption(
        "the server that created it has another name for the database \(database.name): \(state.specification)")
    }
    return specification
  }

  /// Returns the node that is to lead a store which nobody leads; nil once it has had time to.
  private func awaitedLeader(of store: StoreState, among live: [Node: NodeState]) -> NodeState? {
    let now = monotonicMilliseconds()
    let since = state.withLock { state in
      state.successions = state.successions.filter { now < $0.value + 2 * Self.successionTime }
      let since = state.successions[store, default: now]
      state.successions[store] = since
      return since
    }
    if store.leader == nil, let successor = live.values.first(where: { $0.node.id == store.successor }),
      now < since + Self.successionTime
    {
      return successor
    }
    return now < since + Self.preferenceTime ? Placement.node(for: store.name, of: live.values) : nil
  }

  package func followedStore(_ name: StoreName) -> Store? {
    databases.lazy.compactMap { $0.follower.store(named: name) }.first
  }

  package func chooseSuccessor(of store: StoreName, _ node: String) throws(StorageError) -> StoreElsewhere {
    guard let engine = engine(of: store) else { throw .unknownStore(store) }
    for database in databases where database.log === engine.log {
      let live: [Node: NodeState]
      do throws(SharedLogError) { live = try database.membership.liveNodes() } catch {
        throw .engineUnavailable("\(error)")
      }
      if node == database.membership.name { throw .invalidOption("the node \(node) serves the store already") }
      if let successor = live.values.first(where: { $0.name == node }) {
        engine.chooseSuccessor(successor.node.id)
        return StoreElsewhere(servedBy: successor)
      }
      let known = live.values.map(\.name).sorted().joined(separator: ", ")
      throw .invalidOption("there is no node \(node); those that live are \(known)")
    }
    throw .unknownStore(store)
  }

  /// The engine of a store that was opened here.
  private func engine(of store: StoreName) -> ReplicatedEngine? { state.withLock { $0.engines[store]?.engine } }

  /// Leaves all clusters. The server's stores are closed.
  package func leave() { for database in databases { database.leave() } }
}

extension StoreElsewhere {
  init(servedBy node: NodeState) {
    self.init("the node \(node.name) serves it, at \(node.address)", address: node.address)
  }
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
