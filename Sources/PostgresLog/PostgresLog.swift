import Dispatch
import Platform
import Replication
import Storage

/// A shared log in a PostgreSQL database: `Protocol/replicated-format.md`.
///
/// It has six connections, whatever the number of stores: one for beats, which nothing may delay, two for commits, one to
/// follow the commits of others, one to read large values, and one for everything else.
package final class PostgresLog: SharedLog {
  /// How long a beat may take before it is tried on another connection, in milliseconds.
  private static let beatTime: UInt64 = 2_000

  private let beats: DatabaseSession
  private let followers: DatabaseSession
  private let values: DatabaseSession
  private let sessions: DatabaseSession
  private let appender: CommitAppender

  /// - Parameter requiresStandby: Whether to refuse a database without a synchronous standby.
  package init(_ address: DatabaseAddress, requiresStandby: Bool = false) {
    let schema = Schema(requiresStandby: requiresStandby)
    beats = DatabaseSession(address, schema)
    followers = DatabaseSession(address, schema)
    values = DatabaseSession(address, schema)
    sessions = DatabaseSession(address, schema)
    appender = CommitAppender((0..<2).map { _ in DatabaseSession(address, schema) })
  }

  // MARK: Nodes

  private static let selectNodes = Statement(
    "larder_nodes", "SELECT id, epoch, name, address, lease, beat, live FROM larder.node")
  private static let insertNode = Statement(
    "larder_insert_node",
    """
    INSERT INTO larder.node (name, address, lease, epoch, beat, live) VALUES ($1::text, $2::text, $3::int8, 1, 0, true) \
    ON CONFLICT DO NOTHING RETURNING id, epoch
    """)
  private static let reviveNode = Statement(
    "larder_revive_node",
    """
    UPDATE larder.node SET address = $5::text, lease = $6::int8, epoch = epoch + 1, beat = 0, live = true \
    WHERE id = $1::int8 AND epoch = $2::int8 AND beat = $3::int8 AND live = $4::int8::int::boolean RETURNING id, epoch
    """)
  private static let beat = Statement(
    "larder_beat",
    "UPDATE larder.node SET beat = beat + 1 WHERE id = $1::int8 AND epoch = $2::int8 AND live")
  private static let endNode = Statement(
    "larder_end_node",
    """
    UPDATE larder.node SET live = false \
    WHERE id = $1::int8 AND epoch = $2::int8 AND live AND ($3::int8 IS NULL OR beat = $3::int8)
    """)

  package func nodes() throws(SharedLogError) -> [NodeState] {
    try sessions.run(Self.selectNodes).rows.map { row in
      NodeState(
        node: Node(id: row.integer(0), epoch: row.integer(1)), name: row.text(2), address: row.text(3),
        lease: UInt64(clamping: row.integer(4)), beat: row.integer(5), isLive: row.boolean(6))
    }
  }

  package func join(
    _ name: String, address: String, lease: UInt64, after previous: NodeState?
  ) throws(SharedLogError) -> Node? {
    let rows: Rows
    if let previous {
      rows = try sessions.run(
        Self.reviveNode, .integer(previous.node.id), .integer(previous.node.epoch), .integer(previous.beat),
        .integer(previous.isLive ? 1 : 0), .text(address), .integer(Int64(lease)))
    } else {
      rows = try sessions.run(Self.insertNode, .text(name), .text(address), .integer(Int64(lease)))
    }
    return rows.rows.first.map { Node(id: $0.integer(0), epoch: $0.integer(1)) }
  }

  package func beat(_ node: Node) throws(SharedLogError) -> Bool {
    try beats.run(Self.beat, .integer(node.id), .integer(node.epoch), within: Self.beatTime).count == 1
  }

  package func declareDead(_ node: NodeState) throws(SharedLogError) -> Bool {
    try sessions.run(
      Self.endNode, .integer(node.node.id), .integer(node.node.epoch), .integer(node.beat)
    ).count == 1
  }

  package func leave(_ node: Node) throws(SharedLogError) {
    try sessions.run(Self.endNode, .integer(node.id), .integer(node.epoch), .null)
  }

  // MARK: Stores

  private static let selectStores = Statement(
    "larder_stores", "SELECT id, name, specification, epoch, leader, leader_epoch, successor FROM larder.store")
  private static let insertStore = Statement(
    "larder_insert_store",
    """
    WITH created AS (INSERT INTO larder.store (name, specification, epoch, leader, leader_epoch) \
    VALUES ($1::text, $2::text, 1, $3::int8, $4::int8) ON CONFLICT DO NOTHING RETURNING id) \
    INSERT INTO larder.commit SELECT id, 1, 1, 0, '' FROM created RETURNING store, epoch, position
    """)
  private static let leadStore = Statement(
    "larder_lead",
    """
    WITH led AS (UPDATE larder.store SET epoch = epoch + 1, leader = $3::int8, leader_epoch = $4::int8, successor = NULL \
    WHERE id = $1::int8 AND epoch = $2::int8 AND leader IS NOT DISTINCT FROM $5::int8 \
    AND leader_epoch IS NOT DISTINCT FROM $6::int8 AND (leader = $3::int8 AND leader_epoch = $4::int8 OR NOT EXISTS \
    (SELECT FROM larder.node WHERE id = leader AND node.epoch = leader_epoch AND live)) RETURNING id, epoch) \
    INSERT INTO larder.commit SELECT led.id, last.position + 1, led.epoch, last.last_revision, '' FROM led, \
    (SELECT position, last_revision FROM larder.commit WHERE store = $1::int8 ORDER BY position DESC LIMIT 1) last \
    ON CONFLICT DO NOTHING RETURNING store, epoch, position
    """)
  private static let releaseStore = Statement(
    "larder_release",
    """
    UPDATE larder.store SET leader = NULL, leader_epoch = NULL, successor = $3::int8 \
    WHERE id = $1::int8 AND epoch = $2::int8
    """)
  private static let deleteStore = Statement(
    "larder_delete_store", "DELETE FROM larder.store WHERE id = $1::int8 AND epoch = $2::int8")

  package func stores() throws(SharedLogError) -> [StoreState] {
    try sessions.run(Self.selectStores).rows.map { row in
      StoreState(
        id: row.integer(0), name: row.text(1), specification: row.text(2), epoch: row.integer(3),
        leader: row.isNull(4) || row.isNull(5) ? nil : Node(id: row.integer(4), epoch: row.integer(5)),
        successor: row.isNull(6) ? nil : row.integer(6))
    }
  }

  package func create(
    _ name: String, _ specification: String, for node: Node
  ) throws(SharedLogError) -> Leadership? {
    let rows = try sessions.run(
      Self.insertStore, .text(name), .text(specification), .integer(node.id), .integer(node.epoch))
    return Self.leadership(rows)
  }

  package func lead(_ store: StoreState, as node: Node) throws(SharedLogError) -> Leadership? {
    let leader: [Parameter] =
      if let leader = store.leader { [.integer(leader.id), .integer(leader.epoch)] } else { [.null, .null] }
    let parameters: [Parameter] = [
      .integer(store.id), .integer(store.epoch), .integer(node.id), .integer(node.epoch),
    ]
    return Self.leadership(try sessions.run([(Self.leadStore, parameters + leader)])[0])
  }

  private static func leadership(_ rows: Rows) -> Leadership? {
    rows.rows.first.map { Leadership(store: $0.integer(0), epoch: $0.integer(1), position: $0.integer(2)) }
  }

  package func release(_ leadership: Leadership, to successor: Int64?) throws(SharedLogError) {
    try sessions.run(
      Self.releaseStore, .integer(leadership.store), .integer(leadership.epoch), successor.map { .integer($0) } ?? .null
    )
  }

  package func drop(_ leadership: Leadership) throws(SharedLogError) -> Bool {
    let count = try sessions.run(Self.deleteStore, .integer(leadership.store), .integer(leadership.epoch)).count
    guard count == 1 else { return false }
    for statement in [Self.deleteAllCommits, Self.deleteParts, Self.deleteAllValues] {
      while try sessions.run(statement, .integer(leadership.store), .integer(.max)).count > 0 {}
    }
    return true
  }

  private static func select(_ item: String) -> Statement {
    Statement("larder_\(item)", "SELECT \(item) FROM larder.store WHERE id = $1::int8")
  }

  private static func update(_ item: String) -> Statement {
    Statement(
      "larder_set_\(item)",
      "UPDATE larder.store SET \(item) = $3::bytea WHERE id = $1::int8 AND epoch = $2::int8")
  }

  package func bytes(of item: String, in store: StoreID) throws(SharedLogError) -> [UInt8] {
    try sessions.run(Self.select(item), .integer(store)).rows.first?.bytes(0) ?? []
  }

  package func record(
    _ bytes: [UInt8], as item: String, under leadership: Leadership
  ) throws(SharedLogError) -> Bool {
    try sessions.run(
      Self.update(item), .integer(leadership.store), .integer(leadership.epoch), .bytes(bytes)
    ).count == 1
  }

  // MARK: Commits

  private static let pass = Statement("larder_barrier", "UPDATE larder.version SET barrier = barrier + 1")
  private static let selectCommits = Statement(
    "larder_commits",
    """
    SELECT position, epoch, last_revision, records FROM (SELECT *, \
    sum(length(records)) OVER (ORDER BY position) - length(records) AS before FROM \
    (SELECT * FROM larder.commit WHERE store = $1::int8 AND position >= $2::int8 ORDER BY position LIMIT 4096) log) sized \
    WHERE before < $3::int8 ORDER BY position
    """)
  /// The maximum number of commits of a store that are read at a time.
  private static let maxFollowedCount = 256
  private static let prove = Statement("larder_prove", "UPDATE larder.node SET live = live WHERE id = $1::int8")
  private static let followCommits = Statement(
    "larder_follow",
    """
    SELECT followed.store, position, epoch, last_revision, CASE WHEN position > first THEN records ELSE '' END \
    FROM unnest($1::text::int8[], $2::text::int8[]) followed(store, first) CROSS JOIN LATERAL (SELECT *, \
    sum(CASE WHEN position > first THEN length(records) END) OVER (ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 \
    PRECEDING) AS before FROM (SELECT * FROM larder.commit WHERE store = followed.store AND position >= first \
    ORDER BY position LIMIT $4::int8) log) sized WHERE before IS NULL OR before < $3::int8 ORDER BY store, position
    """)
  private static let deleteCommits = Statement(
    "larder_trim",
    """
    DELETE FROM larder.commit WHERE store = $1::int8 AND position < least($2::int8, \
    (SELECT coalesce(max(snapshot_position), 0) FROM larder.store WHERE id = $1::int8), \
    (SELECT min(position) FROM larder.commit WHERE store = $1::int8) + 64)
    """)
  private static let deleteAllCommits = Statement(
    "larder_drop_commits",
    """
    DELETE FROM larder.commit WHERE store = $1::int8 AND position < least($2::int8, \
    (SELECT min(position) FROM larder.commit WHERE store = $1::int8) + 256)
    """)
  private static let deleteParts = Statement(
    "larder_trim_snapshots",
    """
    DELETE FROM larder.snapshot WHERE store = $1::int8 AND position < $2::int8 AND (position, part) IN \
    (SELECT position, part FROM larder.snapshot WHERE store = $1::int8 AND position < $2::int8 LIMIT 64)
    """)

  package func append(_ commit: LogCommit, to store: StoreID) throws(SharedLogError) -> Bool {
    try appender.append(commit, to: store)
  }

  package func synchronize() throws(SharedLogError) { try sessions.run(Self.pass) }

  package func commits(
    of store: StoreID, from position: Int64, upTo byteCount: Int
  ) throws(SharedLogError) -> [LogCommit] {
    try sessions.run(
      Self.selectCommits, .integer(store), .integer(position), .integer(Int64(byteCount))
    ).rows.map { row in
      LogCommit(
        position: row.integer(0), epoch: row.integer(1), lastRevision: UInt64(clamping: row.integer(2)),
        records: row.bytes(3))
    }
  }

  package func commits(
    from positions: [StoreID: Int64], upTo byteCount: Int, provenBy node: Node?
  ) throws(SharedLogError) -> [StoreID: LogTail] {
    let order = positions.keys.sorted()
    let read: (Statement, [Parameter]) = (
      Self.followCommits,
      [
        .array(order), .array(order.map { positions[$0] ?? 0 }), .integer(Int64(byteCount)),
        .integer(Int64(Self.maxFollowedCount)),
      ]
    )
    // A database that has been replaced can't commit.
    let proof = node.map { (Self.prove, [Parameter.integer($0.id)]) }
    guard let rows = try followers.run([proof, read].compactMap(\.self)).last?.rows else { return [:] }
    var tails: [StoreID: LogTail] = [:]
    for row in rows {
      let commit = LogCommit(
        position: row.integer(1), epoch: row.integer(2), lastRevision: UInt64(clamping: row.integer(3)),
        records: row.bytes(4))
      tails[row.integer(0), default: LogTail()].commits.append(commit)
    }
    for (store, tail) in tails {
      let size = tail.commits.dropFirst().reduce(0) { $0 + $1.records.count }
      tails[store]?.isComplete = size < byteCount && tail.commits.count < Self.maxFollowedCount
    }
    return tails
  }

  package func trim(_ store: StoreID, before position: Int64, in end: LogPlace) throws(SharedLogError) -> Bool {
    guard try isInLog(end, of: store) else { return false }
    let parameters: [Parameter] = [.integer(store), .integer(position)]
    let counts = try sessions.run([
      Self.leaveUnsynchronized, (Self.deleteCommits, parameters), (Self.deleteParts, parameters),
    ])
    return counts.dropFirst().contains { $0.count > 0 }
  }

  /// Doesn't let the transaction wait for the disk or the standby: nothing depends on whether it survives a failure.
  private static let leaveUnsynchronized = (
    Statement("larder_unsynchronized", "SELECT set_config('synchronous_commit', 'off', true)"), [Parameter]()
  )
  private static let selectPlace = Statement(
    "larder_place",
    "SELECT FROM larder.commit WHERE store = $1::int8 AND position = $2::int8 AND epoch = $3::int8")

  /// Returns whether a commit is in the log. Nobody removes one that a newer snapshot has not made superfluous.
  private func isInLog(_ place: LogPlace, of store: StoreID) throws(SharedLogError) -> Bool {
    try sessions.run(Self.selectPlace, .integer(store), .integer(place.position), .integer(place.epoch)).count == 1
  }

  // MARK: Large values

  private static let selectValue = Statement(
    "larder_value",
    """
    SELECT coalesce((SELECT substring(bytes FROM ($4::int8 + 1)::int FOR $5::int8::int) FROM larder.value \
    WHERE store = $1::int8 AND position = $2::int8 AND start = $3::int8), \
    (SELECT substring(records FROM ($3::int8 + $4::int8 + 1)::int FOR $5::int8::int) FROM larder.commit \
    WHERE store = $1::int8 AND position = $2::int8), '')
    """)
  private static let keepValues = Statement(
    "larder_keep",
    """
    INSERT INTO larder.value SELECT $1::int8, used.position, used.start, \
    substring(records FROM (used.start + 1)::int FOR used.size::int) \
    FROM unnest($2::text::int8[], $3::text::int8[], $4::text::int8[]) used(position, start, size) \
    JOIN larder.commit ON commit.store = $1::int8 AND commit.position = used.position \
    WHERE NOT EXISTS (SELECT FROM larder.value WHERE store = $1::int8 AND value.position = used.position \
    AND value.start = used.start) ON CONFLICT DO NOTHING
    """)
  private static let selectValues = Statement(
    "larder_values",
    """
    SELECT position, start FROM larder.value WHERE store = $1::int8 AND (position, start) > ($2::int8, $3::int8) \
    AND position < $4::int8 ORDER BY position, start LIMIT 1024
    """)
  private static let deleteValues = Statement(
    "larder_delete_values",
    """
    DELETE FROM larder.value USING unnest($2::text::int8[], $3::text::int8[]) unused(position, start) \
    WHERE store = $1::int8 AND value.position = unused.position AND value.start = unused.start
    """)
  private static let deleteAllValues = Statement(
    "larder_drop_values",
    """
    DELETE FROM larder.value WHERE store = $1::int8 AND (position, start) IN \
    (SELECT position, start FROM larder.value WHERE store = $1::int8 AND position <= $2::int8 LIMIT 256)
    """)

  package func bytes(
    _ range: Range<Int>, of value: ValueReference, in store: StoreID
  ) throws(SharedLogError) -> [UInt8] {
    try values.run(
      Self.selectValue, .integer(store), .integer(value.position), .integer(Int64(value.offset)),
      .integer(Int64(range.lowerBound)), .integer(Int64(range.count))
    ).rows.first?.bytes(0) ?? []
  }

  package func keep(_ values: [LogValue], of store: StoreID) throws(SharedLogError) {
    try sessions.run(
      Self.keepValues, .integer(store), .array(values.map(\.reference.position)),
      .array(values.map { Int64($0.reference.offset) }), .array(values.map { Int64($0.byteCount) }))
  }

  package func values(
    of store: StoreID, after value: ValueReference, before position: Int64
  ) throws(SharedLogError) -> [ValueReference] {
    try sessions.run(
      Self.selectValues, .integer(store), .integer(value.position), .integer(Int64(value.offset)), .integer(position)
    ).rows.map { ValueReference(position: $0.integer(0), offset: Int($0.integer(1))) }
  }

  package func remove(_ values: [ValueReference], of store: StoreID, in end: LogPlace) throws(SharedLogError) {
    guard try isInLog(end, of: store) else { return }
    let parameters: [Parameter] = [
      .integer(store), .array(values.map(\.position)), .array(values.map { Int64($0.offset) }),
    ]
    _ = try sessions.run([Self.leaveUnsynchronized, (Self.deleteValues, parameters)])
  }

  // MARK: Snapshots

  private static let selectSnapshot = Statement(
    "larder_snapshot",
    """
    SELECT snapshot_position, snapshot_revision, snapshot_parts, snapshot_entries FROM larder.store \
    WHERE id = $1::int8 AND snapshot_position IS NOT NULL
    """)
  private static let selectPart = Statement(
    "larder_part",
    "SELECT bytes FROM larder.snapshot WHERE store = $1::int8 AND position = $2::int8 AND part = $3::int8")
  private static let insertPart = Statement(
    "larder_add_part",
    "INSERT INTO larder.snapshot VALUES ($1::int8, $2::int8, $3::int8, $4::bytea) ON CONFLICT DO NOTHING")
  private static let finishSnapshot = Statement(
    "larder_finish_snapshot",
    """
    UPDATE larder.store SET snapshot_position = $2::int8, snapshot_revision = $3::int8, snapshot_parts = $4::int8, \
    snapshot_entries = $5::int8 WHERE id = $1::int8 AND coalesce(snapshot_position, 0) < $2::int8 \
    AND EXISTS (SELECT FROM larder.commit WHERE store = $1::int8 AND position = $6::int8 AND epoch = $7::int8) \
    AND (SELECT count(*) FROM larder.snapshot WHERE store = $1::int8 AND position = $2::int8) = $4::int8
    """)

  package func snapshot(of store: StoreID) throws(SharedLogError) -> LogSnapshot? {
    try sessions.run(Self.selectSnapshot, .integer(store)).rows.first.map { row in
      LogSnapshot(
        position: row.integer(0), revision: UInt64(clamping: row.integer(1)), partCount: Int(row.integer(2)),
        entryCount: Int(row.integer(3)))
    }
  }

  package func part(
    _ number: Int, of snapshot: LogSnapshot, in store: StoreID
  ) throws(SharedLogError) -> [UInt8] {
    try sessions.run(
      Self.selectPart, .integer(store), .integer(snapshot.position), .integer(Int64(number))
    ).rows.first?.bytes(0) ?? []
  }

  package func add(
    _ bytes: [UInt8], as number: Int, at position: Int64, in store: StoreID
  ) throws(SharedLogError) -> Bool {
    let parameters: [Parameter] = [.integer(store), .integer(position), .integer(Int64(number)), .bytes(bytes)]
    // A failure that loses it is noticed when the snapshot is finished.
    return try sessions.run([Self.leaveUnsynchronized, (Self.insertPart, parameters)]).last?.count == 1
  }

  package func finish(
    _ snapshot: LogSnapshot, of store: StoreID, in end: LogPlace
  ) throws(SharedLogError) -> Bool {
    try sessions.run(
      Self.finishSnapshot, .integer(store), .integer(snapshot.position), .integer(Int64(snapshot.revision)),
      .integer(Int64(snapshot.partCount)), .integer(Int64(snapshot.entryCount)), .integer(end.position),
      .integer(end.epoch)
    ).count == 1
  }
}
