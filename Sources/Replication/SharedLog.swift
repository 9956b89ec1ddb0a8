import Storage

/// The log of a cluster: which nodes and stores there are, who leads each store, and the commits of each.
///
/// Everything that servers agree on, they agree on here, by conditional writes: a commit is appended at a position that
/// nobody has taken, and a row is changed only if it is still what the writer has seen. Nothing is locked between calls.
///
/// Calls wait for the network, for a bounded time. They are called from any thread that may wait.
package protocol SharedLog: AnyObject, Sendable {
  // MARK: Nodes

  /// All nodes that there have ever been.
  func nodes() throws(SharedLogError) -> [NodeState]

  /// Begins the life of a node under a name.
  /// - Parameter previous: The state of the node of that name; nil if there was none.
  /// - Returns: The node; nil if that is no longer its state.
  func join(
    _ name: String, address: String, lease: UInt64, after previous: NodeState?
  ) throws(SharedLogError) -> Node?

  /// Shows that a node is alive. When this returns, everything that was visible before survives a failure of the database.
  /// - Returns: Whether it still is: nobody has declared it dead.
  func beat(_ node: Node) throws(SharedLogError) -> Bool

  /// Declares a node dead if it still is in that state. It can't beat afterward.
  /// - Returns: Whether it was.
  func declareDead(_ node: NodeState) throws(SharedLogError) -> Bool

  /// Ends the life of a node in order.
  func leave(_ node: Node) throws(SharedLogError)

  // MARK: Stores

  func stores() throws(SharedLogError) -> [StoreState]

  /// Creates a store that a node leads.
  /// - Returns: nil if there is a store with that name.
  func create(_ name: String, _ specification: String, for node: Node) throws(SharedLogError) -> Leadership?

  /// Makes a node the leader of a store, by one more record in the store's log.
  /// - Parameter store: What the caller has seen.
  /// - Returns: nil if it is no longer so.
  func lead(_ store: StoreState, as node: Node) throws(SharedLogError) -> Leadership?

  /// Gives up the leadership of a store, so that another node can lead it at once.
  /// - Parameter successor: The number of the node that is to lead it; nil for any.
  func release(_ leadership: Leadership, to successor: Int64?) throws(SharedLogError)

  /// Removes a store.
  /// - Returns: Whether the leadership was still in effect.
  func drop(_ leadership: Leadership) throws(SharedLogError) -> Bool

  /// Returns what was last recorded besides the log; empty if nothing was.
  func bytes(of item: String, in store: StoreID) throws(SharedLogError) -> [UInt8]

  /// Records something besides the log.
  /// - Returns: Whether the leadership was still in effect.
  func record(_ bytes: [UInt8], as item: String, under leadership: Leadership) throws(SharedLogError) -> Bool

  // MARK: Commits

  /// Appends a commit, if its position is free and the one before is a record of the same leader.
  /// - Returns: Whether it was appended. If this throws, it may have been.
  func append(_ commit: LogCommit, to store: StoreID) throws(SharedLogError) -> Bool

  /// Makes sure that everything that was visible before survives a failure of the database.
  func synchronize() throws(SharedLogError)

  /// Returns the commits at a position and after it, at least one if there is one.
  /// - Parameter byteCount: The size from which on no more are returned.
  func commits(of store: StoreID, from position: Int64, upTo byteCount: Int) throws(SharedLogError) -> [LogCommit]

  /// Returns the commits of several stores at a position and after it.
  /// - Parameters:
  ///   - positions: The position of the first commit to return of each store. Its records may be missing.
  ///   - byteCount: The size of the others of a store from which on no more are returned.
  ///   - node: This node if the reply has to have everything that was acknowledged before the call, and nothing that a
  ///     failure of the database could undo; nil if that probably suffices, which is faster.
  func commits(
    from positions: [StoreID: Int64], upTo byteCount: Int, provenBy node: Node?
  ) throws(SharedLogError) -> [StoreID: LogTail]

  /// Removes some of the commits before a position, and before the newest snapshot, and parts of older snapshots, if a
  /// commit is in the log.
  /// - Returns: Whether there may be more.
  func trim(_ store: StoreID, before position: Int64, in end: LogPlace) throws(SharedLogError) -> Bool

  // MARK: Large values

  /// Returns a part of a value, which is less than asked for if the value is no longer there.
  func bytes(_ range: Range<Int>, of value: ValueReference, in store: StoreID) throws(SharedLogError) -> [UInt8]

  /// Copies values, so that they stay when their commits are removed. Those that were copied already stay as they are.
  func keep(_ values: [LogValue], of store: StoreID) throws(SharedLogError)

  /// Returns some of the values that were kept, in order: those after one, from commits before a position.
  func values(
    of store: StoreID, after value: ValueReference, before position: Int64
  ) throws(SharedLogError) -> [ValueReference]

  /// Removes values that were kept, if a commit is in the log.
  func remove(_ values: [ValueReference], of store: StoreID, in end: LogPlace) throws(SharedLogError)

  // MARK: Snapshots

  /// Returns the newest snapshot that is complete; nil if there is none.
  func snapshot(of store: StoreID) throws(SharedLogError) -> LogSnapshot?

  func part(_ number: Int, of snapshot: LogSnapshot, in store: StoreID) throws(SharedLogError) -> [UInt8]

  /// Adds a part of a snapshot. A failure of the database may lose it until the snapshot is finished.
  /// - Returns: Whether there was no such part.
  func add(_ bytes: [UInt8], as number: Int, at position: Int64, in store: StoreID) throws(SharedLogError) -> Bool

  /// Makes a snapshot the newest one, now that it has all of its parts, if a commit is in the log that has its revision.
  /// - Returns: Whether it was, and all parts are there, and the snapshot is newer than the one before.
  func finish(_ snapshot: LogSnapshot, of store: StoreID, in end: LogPlace) throws(SharedLogError) -> Bool
}

/// Why a call to a shared log has failed.
package enum SharedLogError: Error, Equatable, Sendable {
  /// The log can't be reached, doesn't respond, or isn't set up safely, for this reason. The write may have taken effect.
  case unavailable(String)
}

extension SharedLogError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .unavailable(let reason): reason
    }
  }
}

/// The number of a store in a shared log.
package typealias StoreID = Int64

/// A node as long as it lives: from `join` until it leaves or is declared dead.
package struct Node: Hashable, Sendable {
  package let id: Int64
  package let epoch: Int64

  package init(id: Int64, epoch: Int64) { (self.id, self.epoch) = (id, epoch) }
}

/// What a shared log knows of a node.
package struct NodeState: Hashable, Sendable {
  package let node: Node
  package let name: String
  package let address: String
  /// How long its lease lasts after a beat, in milliseconds.
  package let lease: UInt64
  package let beat: Int64
  /// Whether it has neither left nor been declared dead.
  package let isLive: Bool

  package init(node: Node, name: String, address: String, lease: UInt64, beat: Int64, isLive: Bool) {
    (self.node, self.name, self.address) = (node, name, address)
    (self.lease, self.beat, self.isLive) = (lease, beat, isLive)
  }
}

/// What a shared log knows of a store.
package struct StoreState: Hashable, Sendable {
  package let id: StoreID
  package let name: String
  package let specification: String
  /// The number of its leadership, which increases with each one.
  package let epoch: Int64
  /// The node that leads it; nil if that has given it up.
  package let leader: Node?
  /// The number of the node that is to lead it next; nil for any.
  package let successor: Int64?

  package init(
    id: StoreID, name: String, specification: String, epoch: Int64, leader: Node?, successor: Int64? = nil
  ) {
    (self.id, self.name, self.specification) = (id, name, specification)
    (self.epoch, self.leader, self.successor) = (epoch, leader, successor)
  }
}

/// A node's leadership of a store.
package struct Leadership: Hashable, Sendable {
  package let store: StoreID
  package let epoch: Int64
  /// The position of the record with which it begins.
  package let position: Int64

  package init(store: StoreID, epoch: Int64, position: Int64) {
    (self.store, self.epoch, self.position) = (store, epoch, position)
  }
}

/// A commit in a shared log: the records of some revisions, or none if it begins a leadership.
package struct LogCommit: Equatable, Sendable {
  /// The positions of a store's commits begin at 1, without gaps.
  package let position: Int64
  package let epoch: Int64
  /// The revision of the last record so far.
  package let lastRevision: UInt64
  package let records: [UInt8]

  package init(position: Int64, epoch: Int64, lastRevision: UInt64, records: [UInt8]) {
    (self.position, self.epoch, self.lastRevision, self.records) = (position, epoch, lastRevision, records)
  }
}

/// A place in the log of a store: a commit, and which leader's it is.
package struct LogPlace: Sendable {
  package var position: Int64
  package var epoch: Int64
  /// The position of the newest snapshot that was known when reading began, or since; 0 for none.
  var snapshotPosition: Int64 = 0
  /// The size of the commits up to this place since that snapshot, in bytes.
  var byteCount = 0
}

/// A large value of a store, in one of its commits.
package struct LogValue: Sendable {
  package let reference: ValueReference
  package let byteCount: Int

  package init(reference: ValueReference, byteCount: Int) {
    (self.reference, self.byteCount) = (reference, byteCount)
  }
}

/// The last commits of a store.
package struct LogTail: Sendable {
  package var commits: [LogCommit]
  /// Whether there are no more.
  package var isComplete: Bool

  package init(_ commits: [LogCommit] = [], isComplete: Bool = true) {
    (self.commits, self.isComplete) = (commits, isComplete)
  }
}

/// A snapshot of a store: its entries after a commit, and maybe after some that follow.
package struct LogSnapshot: Equatable, Sendable {
  /// The position of the last commit that it certainly includes.
  package let position: Int64
  /// The last revision that it includes.
  package let revision: UInt64
  package let partCount: Int
  package let entryCount: Int

  package init(position: Int64, revision: UInt64, partCount: Int, entryCount: Int) {
    (self.position, self.revision, self.partCount, self.entryCount) = (position, revision, partCount, entryCount)
  }
}
