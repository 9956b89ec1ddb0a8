import Platform
import Replication
import Storage

/// A shared log in memory, whose database has a primary and a standby, and whose network may fail under a seed.
///
/// A write that is acknowledged is on both. One whose outcome is unknown may be on neither, on both, or on the primary only;
/// then it is visible, and a failover loses it.
package final class SimulatedLog: SharedLog, Sendable {
  /// What happens to a call.
  package enum Fault: CaseIterable {
    case none
    /// The call fails, and nothing has happened.
    case before
    /// The call fails although it has happened.
    case after
    /// The call fails, and what it has written is visible but not on the standby.
    case unsynchronized
  }

  /// A rule of the format that the log, or those who use it, breaks.
  package enum Sabotage: CaseIterable {
    /// A commit replaces one that has taken its position.
    case noFence
    /// Nothing makes sure that what is visible is on the standby.
    case noBarrier
    /// Nodes are declared dead as soon as they are seen twice.
    case noObservation
    /// Nodes answer reads without a lease.
    case noLeaseCheck
    /// The lease begins when a beat is acknowledged.
    case lateLease
  }

  package struct Contents {
    package var nodes: [NodeState] = []
    package var stores: [StoreState] = []
    package var items: [StoreID: [String: [UInt8]]] = [:]
    package var commits: [StoreID: [Int64: LogCommit]] = [:]
    package var parts: [StoreID: [Int64: [Int: [UInt8]]]] = [:]
    package var snapshots: [StoreID: LogSnapshot] = [:]
    package var values: [StoreID: [ValueReference: [UInt8]]] = [:]
    var lastID: Int64 = 0
  }

  private struct State {
    var primary = Contents()
    var standby = Contents()
  }

  private let state = Lock(State())
  private let sabotage: Sabotage?
  /// Called before and after each call, which may let time pass and others act, and says what happens to the call.
  private let weather: @Sendable (_ isBefore: Bool) -> Fault

  package init(sabotage: Sabotage? = nil, weather: @escaping @Sendable (_ isBefore: Bool) -> Fault = { _ in .none }) {
    (self.sabotage, self.weather) = (sabotage, weather)
  }

  /// Loses what only the primary has.
  package func failOver() { state.withLock { $0.primary = $0.standby } }

  /// What the log has.
  package var contents: Contents { state.withLock { $0.primary } }

  /// Changes what the log has, behind everybody's back.
  package func change(_ body: (inout Contents) -> Void) {
    state.withLock { state in
      body(&state.primary)
      state.standby = state.primary
    }
  }

  /// - Parameter body: Returns nil for the contents if it has written nothing.
  private func call<Result>(
    _ body: (Contents) -> (result: Result, contents: Contents?)
  ) throws(SharedLogError) -> Result {
    let fault = weather(true)
    if fault == .before { throw .unavailable("simulated, before") }
    let result = state.withLock { state in
      let (result, contents) = body(state.primary)
      if let contents {
        state.primary = contents
        if fault != .unsynchronized { state.standby = contents }
      }
      return result
    }
    if fault == .after || fault == .unsynchronized { throw .unavailable("simulated, after") }
    _ = weather(false)
    return result
  }

  // MARK: Nodes

  package func nodes() throws(SharedLogError) -> [NodeState] {
    let nodes = try call { ($0.nodes, nil) }
    guard sabotage == .noObservation else { return nodes }
    return nodes.map {
      NodeState(node: $0.node, name: $0.name, address: $0.address, lease: 0, beat: $0.beat, isLive: $0.isLive)
    }
  }

  package func join(
    _ name: String, address: String, lease: UInt64, after previous: NodeState?
  ) throws(SharedLogError) -> Node? {
    try call { contents in
      var contents = contents
      let index = contents.nodes.firstIndex { $0.name == name }
      guard index.map({ contents.nodes[$0].beat }) == previous?.beat,
        index.map({ contents.nodes[$0].node }) == previous?.node,
        index.map({ contents.nodes[$0].isLive }) == previous?.isLive
      else { return (nil, nil) }
      var node = Node(id: contents.lastID + 1, epoch: 1)
      if let index { node = Node(id: contents.nodes[index].node.id, epoch: contents.nodes[index].node.epoch + 1) }
      let joined = NodeState(node: node, name: name, address: address, lease: lease, beat: 0, isLive: true)
      if let index { contents.nodes[index] = joined } else { contents.nodes.append(joined) }
      contents.lastID += 1
      return (node, contents)
    }
  }

  private func change(
    _ node: Node, if isExpected: (NodeState) -> Bool, _ change: (NodeState) -> NodeState
  ) throws(SharedLogError) -> Bool {
    try call { contents in
      var contents = contents
      guard let index = contents.nodes.firstIndex(where: { $0.node == node && $0.isLive && isExpected($0) }) else {
        return (false, nil)
      }
      contents.nodes[index] = change(contents.nodes[index])
      return (true, contents)
    }
  }

  package func beat(_ node: Node) throws(SharedLogError) -> Bool {
    try change(node) { _ in
      true
    } _: {
      $0.with(beat: $0.beat + 1)
    }
  }

  package func declareDead(_ node: NodeState) throws(SharedLogError) -> Bool {
    try change(node.node) {
      $0.beat == node.beat
    } _: {
      $0.with(isLive: false)
    }
  }

  package func leave(_ node: Node) throws(SharedLogError) {
    _ = try change(node) { _ in
      true
    } _: {
      $0.with(isLive: false)
    }
  }

  // MARK: Stores

  package func stores() throws(SharedLogError) -> [StoreState] { try call { ($0.stores, nil) } }

  package func create(_ name: String, _ specification: String, for node: Node) throws(SharedLogError) -> Leadership? {
    try call { contents in
      var contents = contents
      guard !contents.stores.contains(where: { $0.name == name }) else { return (nil, nil) }
      contents.lastID += 1
      let id = contents.lastID
      contents.stores.append(StoreState(id: id, name: name, specification: specification, epoch: 1, leader: node))
      contents.commits[id] = [1: LogCommit(position: 1, epoch: 1, lastRevision: 0, records: [])]
      return (Leadership(store: id, epoch: 1, position: 1), contents)
    }
  }

  package func lead(_ store: StoreState, as node: Node) throws(SharedLogError) -> Leadership? {
    try call { contents in
      var contents = contents
      let leaderLives = contents.nodes.contains { $0.node == store.leader && $0.isLive }
      guard let index = contents.stores.firstIndex(of: store), store.leader == node || !leaderLives,
        let last = contents.commits[store.id]?.values.max(by: { $0.position < $1.position })
      else { return (nil, nil) }
      let epoch = store.epoch + 1
      contents.stores[index] = StoreState(
        id: store.id, name: store.name, specification: store.specification, epoch: epoch, leader: node)
      let position = last.position + 1
      contents.commits[store.id]?[position] = LogCommit(
        position: position, epoch: epoch, lastRevision: last.lastRevision, records: [])
      return (Leadership(store: store.id, epoch: epoch, position: position), contents)
    }
  }

  /// Changes something of a store if the leadership is in effect.
  private func change(
    under leadership: Leadership, _ change: (inout Contents, Int) -> Void
  ) throws(SharedLogError) -> Bool {
    try call { contents in
      var contents = contents
      guard
        let index = contents.stores.firstIndex(where: { $0.id == leadership.store && $0.epoch == leadership.epoch })
      else { return (false, nil) }
      change(&contents, index)
      return (true, contents)
    }
  }

  package func release(_ leadership: Leadership, to successor: Int64?) throws(SharedLogError) {
    _ = try change(under: leadership) { contents, index in
      let store = contents.stores[index]
      contents.stores[index] = StoreState(
        id: store.id, name: store.name, specification: store.specification, epoch: store.epoch, leader: nil,
        successor: successor)
    }
  }

  package func drop(_ leadership: Leadership) throws(SharedLogError) -> Bool {
    try change(under: leadership) { contents, index in
      contents.stores.remove(at: index)
      contents.commits[leadership.store] = nil
      contents.parts[leadership.store] = nil
      contents.snapshots[leadership.store] = nil
      contents.values[leadership.store] = nil
      contents.items[leadership.store] = nil
    }
  }

  package func bytes(of item: String, in store: StoreID) throws(SharedLogError) -> [UInt8] {
    try call { ($0.items[store]?[item] ?? [], nil) }
  }

  package func record(_ bytes: [UInt8], as item: String, under leadership: Leadership) throws(SharedLogError) -> Bool {
    try change(under: leadership) { contents, _ in contents.items[leadership.store, default: [:]][item] = bytes }
  }

  // MARK: Commits

  package func append(_ commit: LogCommit, to store: StoreID) throws(SharedLogError) -> Bool {
    try call { contents in
      var contents = contents
      let commits = contents.commits[store] ?? [:]
      let isFree = commits[commit.position] == nil && commits[commit.position - 1]?.epoch == commit.epoch
      guard isFree || sabotage == .noFence else { return (false, nil) }
      contents.commits[store, default: [:]][commit.position] = commit
      return (true, contents)
    }
  }

  package func synchronize() throws(SharedLogError) {
    try call { contents in ((), sabotage == .noBarrier ? nil : contents) }
  }

  package func commits(of store: StoreID, from position: Int64, upTo byteCount: Int) throws(SharedLogError)
    -> [LogCommit]
  {
    try call { contents in
      var (found, size) = ([LogCommit](), 0)
      let commits = (contents.commits[store] ?? [:]).values.filter { $0.position >= position }
      for commit in commits.sorted(by: { $0.position < $1.position }) where size < byteCount || found.isEmpty {
        found.append(commit)
        size += commit.records.count
      }
      return (found, nil)
    }
  }

  package func commits(
    from positions: [StoreID: Int64], upTo byteCount: Int, provenBy node: Node?
  ) throws(SharedLogError) -> [StoreID: LogTail] {
    if node != nil { try synchronize() }
    return try call { contents in
      let tails = positions.map { store, position in
        let commits = (contents.commits[store] ?? [:]).values.filter { $0.position >= position }
        var (tail, size) = (LogTail(), 0)
        for commit in commits.sorted(by: { $0.position < $1.position }) where size < byteCount {
          tail.commits.append(commit)
          if commit.position > position { size += commit.records.count }
        }
        tail.isComplete = tail.commits.count == commits.count
        return (store, tail)
      }
      return (Dictionary(uniqueKeysWithValues: tails), nil)
    }
  }

  /// Changes something of a store if a commit is in its log.
  private func change(
    _ store: StoreID, in end: LogPlace, _ change: (inout Contents) -> Bool
  ) throws(SharedLogError) -> Bool {
    try call { contents in
      var contents = contents
      guard contents.commits[store]?[end.position]?.epoch == end.epoch, change(&contents) else { return (false, nil) }
      return (true, contents)
    }
  }

  package func trim(_ store: StoreID, before position: Int64, in end: LogPlace) throws(SharedLogError) -> Bool {
    _ = try change(store, in: end) { contents in
      let end = min(position, contents.snapshots[store]?.position ?? 0)
      contents.commits[store] = contents.commits[store]?.filter { $0.key >= end }
      contents.parts[store] = contents.parts[store]?.filter { $0.key >= end }
      return true
    }
    return false
  }

  // MARK: Large values

  package func bytes(
    _ range: Range<Int>, of value: ValueReference, in store: StoreID
  ) throws(SharedLogError) -> [UInt8] {
    try call { contents in
      if let kept = contents.values[store]?[value] { return (Array(kept[range.clamped(to: kept.indices)]), nil) }
      guard let records = contents.commits[store]?[value.position]?.records.dropFirst(value.offset) else {
        return ([], nil)
      }
      return (Array(records.dropFirst(range.lowerBound).prefix(range.count)), nil)
    }
  }

  package func keep(_ values: [LogValue], of store: StoreID) throws(SharedLogError) {
    try call { contents in
      var contents = contents
      for value in values where contents.values[store]?[value.reference] == nil {
        guard let records = contents.commits[store]?[value.reference.position]?.records else { continue }
        contents.values[store, default: [:]][value.reference] = Array(
          records.dropFirst(value.reference.offset).prefix(value.byteCount))
      }
      return ((), contents)
    }
  }

  package func values(
    of store: StoreID, after value: ValueReference, before position: Int64
  ) throws(SharedLogError) -> [ValueReference] {
    func key(_ value: ValueReference) -> (Int64, Int) { (value.position, value.offset) }
    return try call { contents in
      let values = (contents.values[store] ?? [:]).keys.filter { key($0) > key(value) && $0.position < position }
      return (Array(values.sorted { key($0) < key($1) }.prefix(2)), nil)
    }
  }

  package func remove(_ values: [ValueReference], of store: StoreID, in end: LogPlace) throws(SharedLogError) {
    _ = try change(store, in: end) { contents in
      for value in values { contents.values[store]?[value] = nil }
      return true
    }
  }

  // MARK: Snapshots

  package func snapshot(of store: StoreID) throws(SharedLogError) -> LogSnapshot? {
    try call { ($0.snapshots[store], nil) }
  }

  package func part(_ number: Int, of snapshot: LogSnapshot, in store: StoreID) throws(SharedLogError) -> [UInt8] {
    try call { ($0.parts[store]?[snapshot.position]?[number] ?? [], nil) }
  }

  package func add(
    _ bytes: [UInt8], as number: Int, at position: Int64, in store: StoreID
  ) throws(SharedLogError) -> Bool {
    try call { contents in
      guard contents.parts[store]?[position]?[number] == nil else { return (false, nil) }
      var contents = contents
      contents.parts[store, default: [:]][position, default: [:]][number] = bytes
      return (true, contents)
    }
  }

  package func finish(_ snapshot: LogSnapshot, of store: StoreID, in end: LogPlace) throws(SharedLogError) -> Bool {
    try change(store, in: end) { contents in
      guard contents.snapshots[store]?.position ?? 0 < snapshot.position,
        contents.parts[store]?[snapshot.position]?.count ?? 0 == snapshot.partCount
      else { return false }
      contents.snapshots[store] = snapshot
      return true
    }
  }
}

extension NodeState {
  package func with(beat: Int64? = nil, isLive: Bool? = nil) -> NodeState {
    NodeState(
      node: node, name: name, address: address, lease: lease, beat: beat ?? self.beat, isLive: isLive ?? self.isLive)
  }
}
