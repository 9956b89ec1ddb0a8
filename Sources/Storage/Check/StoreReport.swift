/// What a check has found in the files of one store, whatever its engine.
package struct StoreReport: Equatable, Sendable {
  package struct Damage: Equatable, Sendable {
    package let path: String
    /// The offset in the file; nil for the file as a whole.
    package let offset: Int?
    package let reason: String
  }

  /// What a salvage has copied and lost.
  package struct SalvageSummary: Equatable, Sendable {
    /// The number of copied records of a log, or entries of a directory.
    package let copied: Int
    /// The number of unreadable bytes in a log.
    package var lostBytes = 0
    /// The number of writes and deletions that are lost, as far as it is known: the entries are older than they were,
    /// absent, or there again.
    package var lostEntries = 0
    /// The number of missing files with unknown contents.
    package var lostFiles = 0
  }

  /// What an engine reports about its files.
  struct Files {
    fileprivate let files: Int
    fileprivate let count: Int
    fileprivate let byteCount: Int
    fileprivate let revision: UInt64
    fileprivate var damage: [Damage] = []
    fileprivate var remarks: [String] = []

    init(files: Int, count: Int, byteCount: Int, revision: UInt64) {
      self.files = files
      self.count = count
      self.byteCount = byteCount
      self.revision = revision
    }

    mutating func add(_ damage: Damage) { self.damage.append(damage) }

    mutating func addRemark(_ remark: String) { remarks.append(remark) }
  }

  /// The name of the store's folder.
  package let name: String
  /// The engine; nil if it is unknown.
  package let engine: EngineKind?
  package private(set) var files = 0
  /// The number of intact records of a log, or entries of a directory.
  package private(set) var count = 0
  package private(set) var byteCount = 0
  package private(set) var revision: UInt64 = 0
  /// The number of defined indexes.
  package internal(set) var indexCount = 0
  package private(set) var damage: [Damage]
  /// Findings that are worth knowing, but are not damage.
  package private(set) var remarks: [String] = []
  package internal(set) var salvage: SalvageSummary?

  package var isIntact: Bool { damage.isEmpty }

  /// - Parameter damage: The damage to the store's description, if any.
  init(_ name: String, engine: EngineKind?, damage: Damage?) {
    self.name = name
    self.engine = engine
    self.damage = damage.map { [$0] } ?? []
  }

  mutating func add(_ report: Files) {
    (files, count, byteCount, revision) = (report.files, report.count, report.byteCount, report.revision)
    damage += report.damage
    remarks += report.remarks
  }

  mutating func addDamage(_ path: String, _ reason: String) {
    damage.append(Damage(path: path, offset: nil, reason: reason))
  }
}
