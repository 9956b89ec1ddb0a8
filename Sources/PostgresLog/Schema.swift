import Platform
import Replication

/// The tables of the log, which the first server creates (`Protocol/replicated-format.md`), and what else a database must
/// be like.
struct Schema: Sendable {
  /// Whether the database must wait for a standby before it acknowledges a commit.
  private let requiresStandby: Bool

  /// The version that this program needs.
  private static let version = Int64(migrations.count)
  /// The advisory lock under which the tables are created: "larder" in ASCII.
  private static let lock = "119182991545714"

  init(requiresStandby: Bool) { self.requiresStandby = requiresStandby }

  private static let check = Statement(
    "larder_check",
    """
    SELECT pg_is_in_recovery(), current_setting('transaction_read_only'), current_setting('fsync'), \
    current_setting('full_page_writes'), current_setting('synchronous_commit'), \
    current_setting('synchronous_standby_names'), to_regclass('larder.version') IS NOT NULL
    """)

  private static let readVersion = Statement("larder_version", "SELECT version FROM larder.version")

  /// For each version, the statements that make it of the one before. A second server may run them again.
  private static let migrations: [[Statement]] = [creation, valueTable].enumerated().map { index, statements in
    let lock = "SELECT pg_advisory_xact_lock(\(lock))"
    let record = "UPDATE larder.version SET version = greatest(version, \(index + 1))"
    return ([lock] + statements + [record]).enumerated().map {
      Statement("larder_migrate_\(index + 1)_\($0.offset)", $0.element)
    }
  }

  /// Version 1.
  private static let creation = [
    "CREATE SCHEMA IF NOT EXISTS larder",
    "CREATE TABLE IF NOT EXISTS larder.version (version bigint NOT NULL, barrier bigint NOT NULL)",
    """
    INSERT INTO larder.version SELECT 0, 0 WHERE NOT EXISTS (SELECT FROM larder.version)
    """,
    """
    CREATE TABLE IF NOT EXISTS larder.node (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text NOT NULL UNIQUE,
      address text NOT NULL,
      lease bigint NOT NULL,
      epoch bigint NOT NULL,
      beat bigint NOT NULL,
      live boolean NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS larder.store (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text NOT NULL UNIQUE,
      specification text NOT NULL,
      epoch bigint NOT NULL,
      leader bigint REFERENCES larder.node,
      leader_epoch bigint,
      successor bigint,
      indexes bytea NOT NULL DEFAULT '',
      history bytea NOT NULL DEFAULT '',
      snapshot_position bigint,
      snapshot_revision bigint,
      snapshot_parts bigint,
      snapshot_entries bigint)
    """,
    """
    CREATE TABLE IF NOT EXISTS larder.commit (
      store bigint NOT NULL,
      position bigint NOT NULL,
      epoch bigint NOT NULL,
      last_revision bigint NOT NULL,
      records bytea NOT NULL,
      PRIMARY KEY (store, position))
    """,
    "ALTER TABLE larder.commit ALTER records SET STORAGE EXTERNAL",
    """
    CREATE TABLE IF NOT EXISTS larder.snapshot (
      store bigint NOT NULL,
      position bigint NOT NULL,
      part bigint NOT NULL,
      bytes bytea NOT NULL,
      PRIMARY KEY (store, position, part))
    """,
    "ALTER TABLE larder.snapshot ALTER bytes SET STORAGE EXTERNAL",
  ]

  /// Version 2: large values that are no longer in commits.
  private static let valueTable = [
    """
    CREATE TABLE IF NOT EXISTS larder.value (
      store bigint NOT NULL,
      position bigint NOT NULL,
      start bigint NOT NULL,
      bytes bytea NOT NULL,
      PRIMARY KEY (store, position, start))
    """,
    "ALTER TABLE larder.value ALTER bytes SET STORAGE EXTERNAL",
  ]

  /// Checks a new connection, and creates the tables unless they exist.
  /// - Throws: Also if the database could lose what it has acknowledged, or has tables of another version.
  func prepare(_ connection: DatabaseConnection, deadline: UInt64) throws(SharedLogError) {
    func run(_ statements: [Statement]) throws(SharedLogError) -> [Rows] {
      do throws(DatabaseError) { return try connection.run(statements.map { ($0, []) }, deadline: deadline) } catch {
        throw .unavailable("\(error)")
      }
    }
    guard let row = try run([Self.check])[0].rows.first else { throw .unavailable("the database returned nothing") }
    guard !row.boolean(0), row.text(1) == "off" else {
      throw .unavailable("the database accepts no writes: it is a standby, or read-only")
    }
    for (column, name) in [(2, "fsync"), (3, "full_page_writes")] where row.text(column) != "on" {
      throw .unavailable("the database can lose what it has acknowledged: set \(name) = on")
    }
    guard ["on", "remote_apply"].contains(row.text(4)) else {
      throw .unavailable("the database can lose what it has acknowledged: set synchronous_commit = on")
    }
    if requiresStandby, row.text(5).isEmpty {
      throw .unavailable(
        "the database has no synchronous standby, which cluster.require-standby demands: set synchronous_standby_names")
    }
    var version = row.boolean(6) ? try run([Self.readVersion])[0].rows.first?.integer(0) ?? 0 : 0
    while (0..<Self.version).contains(version) {
      _ = try run(Self.migrations[Int(version)])
      version += 1
    }
    guard version == Self.version else {
      throw .unavailable(
        "the schema larder of the database has version \(version), and this program needs \(Self.version): use the "
          + "larderd that belongs to it")
    }
  }
}
