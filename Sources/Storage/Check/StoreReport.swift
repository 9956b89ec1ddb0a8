/// What was found of one store's files, whatever its engine.
package struct StoreReport: Equatable, Sendable {
  package struct Damage: Equatable, Sendable {
    package let path: String
    /// Where in the file; nil when it is the file as a whole.
    package let offset: Int?
    package let what: String
  }

  /// What was copied elsewhere.
  package struct Salvage: Equatable, Sendable {
    /// Records of a log, entries of a directory.
    package let copied: Int
    /// Of a log, bytes in places that can't be read.
    package var lostBytes = 0
    /// Of a directory, entries whose files aren't intact.
    package var lostEntries = 0
    /// Whole files that are missing, of which nobody knows what was in them.
    package var lostFiles = 0
  }

  /// As its folder has it.
  package let name: String
  /// Nil when it can't be told.
  package internal(set) var engine: EngineKind?
  package internal(set) var files = 0
  /// Intact records of a log, or entries of a directory.
  package internal(set) var count = 0
  package internal(set) var byteCount = 0
  package internal(set) var revision: UInt64 = 0
  package internal(set) var damage: [Damage] = []
  /// What is no damage and worth knowing.
  package internal(set) var remarks: [String] = []
  package internal(set) var salvage: Salvage?

  package var isIntact: Bool { damage.isEmpty }

  init(_ name: String, engine: EngineKind? = nil) {
    self.name = name
    self.engine = engine
  }

  mutating func note(_ path: String, at offset: Int? = nil, _ what: String) {
    damage.append(Damage(path: path, offset: offset, what: what))
  }

  mutating func take(_ log: LogCheck.Report) {
    for segment in log.segments {
      files += 1
      count += segment.records
      byteCount += segment.byteCount
      revision = max(revision, segment.lastRevision)
      if let found = segment.damage { note(segment.path, at: found.offset, found.what) }
      if segment.tornBytes > 0 {
        remarks.append(
          "\(segment.path) has \(segment.tornBytes) bytes of an unfinished write from byte \(segment.intactBytes) on;"
            + " the next start cuts them off")
      }
    }
    for path in log.missing { note(path, "the segment is missing") }
  }

  mutating func take(_ directory: DirectoryReport, in path: String) {
    files = directory.files
    count = directory.entries
    byteCount = directory.valueBytes
    revision = directory.revision
    for finding in directory.findings {
      if let (offset, what) = finding.damage {
        note(path + "/" + finding.name, at: offset, what)
      } else {
        remarks.append("\(path)/\(finding)")
      }
    }
  }
}

extension DirectoryReport {
  /// Entries that were there and can't be had any more.
  var lostEntries: Int {
    findings.count { finding in
      switch finding.oddity {
      case .changed, .keyUnknown: true
      case .unreadable: finding.name != WriteAheadLog.name
      default: false
      }
    }
  }
}

extension DirectoryReport.Finding {
  /// What is wrong and where, if something that the store wrote is not as it was.
  fileprivate var damage: (offset: Int?, what: String)? {
    switch oddity {
    case .changed: (nil, "its checksum doesn't fit; the key counts as absent")
    case .keyUnknown: (nil, "the file with its key is missing or damaged; the entry counts as absent")
    case .unreadable(let reason): (nil, "it can't be read: \(reason)")
    case .damaged(let offset, let reason): (offset, reason)
    case .journalMissing: (nil, "the journal is missing, and with it what it had ahead of the files")
    case .notAFile where name == WriteAheadLog.name: (nil, "the journal is not a regular file")
    case .foreign, .notAFile, .ahead, .tornTail: nil
    }
  }
}
