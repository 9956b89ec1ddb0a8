import Platform

/// What a directory store's folder contains, and which issues it has.
package struct DirectoryReport: Equatable, Sendable {
  /// Something that the store didn't leave that way. Nothing is ever removed or changed because of it, except by a
  /// write to the same key.
  package struct Issue: Equatable, Sendable {
    package let name: String
    package let kind: IssueKind
  }

  package enum IssueKind: Equatable, Sendable {
    /// The name doesn't belong to the store.
    case foreign
    /// A link, a folder, a socket and so on with a name that a file of the store could have. It is not followed.
    case notAFile
    /// The file doesn't contain what was written under that name: it was damaged or edited. The key counts as absent.
    case changed
    /// The file contains what was written under that name, but no server has written it: the key isn't UTF-8, or a list
    /// doesn't have the form of one. The key counts as absent.
    case invalid(String)
    /// The file with the key is missing or doesn't contain it. The entry counts as absent.
    case keyUnknown
    /// The file can't be read, for that reason. A store with such a file is not opened: the key would be absent, and
    /// then be overwritten.
    case unreadable(String)
    /// The store has never assigned the file's revision: someone put the file there. It is an entry all the same.
    case ahead
    /// A journal is damaged or incomplete there, where it was on disk. The commits in that place are lost unless their
    /// files were written.
    case damaged(offset: Int, reason: String)
    /// A later version of this program has written the journal, or the list.
    case laterVersion
    /// There are entries, and no server has opened the folder: revisions of deleted entries may be assigned again.
    case journalMissing
    /// The last bytes of a journal, from there on, were being written when the process or the machine ended.
    /// They are ignored.
    case tornTail(offset: Int)
  }

  /// The number of entries whose files or records are intact and that haven't expired.
  package internal(set) var entries = 0
  package internal(set) var valueBytes = 0
  /// The number of names in the folder, of any kind.
  package internal(set) var files = 0
  package internal(set) var revision: UInt64 = 0
  /// The number of operations in the journals whose files were not known to be on disk.
  package internal(set) var replayed = 0
  /// The number of temporary files, replaced entries and unused key files, as a crash leaves them. Opening removes
  /// them.
  package internal(set) var leftovers = 0
  /// The number of operations that damaged journals have lost and no file has, as far as it is known. The entries that
  /// they wrote are older than they were, or absent.
  var lostOperations = 0
  package internal(set) var issues: [Issue] = []

  package var isClean: Bool { issues.isEmpty }

  /// The number of entries that are older than they were, absent, or there again, as far as it is known.
  var lostEntryCount: Int {
    lostOperations
      + issues.count { issue in
        switch issue.kind {
        case .changed, .invalid, .keyUnknown: true
        case .unreadable: !Journal.isJournalOrList(issue.name)
        default: false
        }
      }
  }

  mutating func add(_ name: String, _ kind: IssueKind) { issues.append(Issue(name: name, kind: kind)) }
}

extension DirectoryReport.Issue: CustomStringConvertible {
  package var description: String {
    switch kind {
    case .foreign: "\(name): not a file of the store; left alone"
    case .notAFile: "\(name): not a regular file; left alone"
    case .changed: "\(name): damaged or edited, its checksum is wrong; the key counts as absent"
    case .invalid(let reason): "\(name): \(reason); the key counts as absent"
    case .keyUnknown: "\(name): the file with its key is missing or damaged; the entry counts as absent"
    case .unreadable(let reason): "\(name): can't be read (\(reason)); the store can't be opened until this is fixed"
    case .ahead: "\(name): has a revision that the store never assigned; accepted as an entry"
    case .damaged(let offset, let reason): "\(name): damaged at byte \(offset): \(reason)"
    case .laterVersion: "\(name): \(laterVersionProblem)"
    case .journalMissing: "\(name): missing; revisions of deleted entries may be assigned again"
    case .tornTail(let offset): "\(name): unfinished write at byte \(offset); ignored"
    }
  }

  /// What is wrong, if something that the store has written is not as it was; nil for other issues.
  fileprivate var damage: (offset: Int?, reason: String)? {
    switch kind {
    case .changed: (nil, "its checksum is wrong; the key counts as absent")
    case .invalid(let reason): (nil, "\(reason); the key counts as absent")
    case .keyUnknown: (nil, "the file with its key is missing or damaged; the entry counts as absent")
    case .unreadable(let reason): (nil, "it can't be read: \(reason)")
    case .damaged(let offset, let reason): (offset, reason)
    case .laterVersion: (nil, "it \(laterVersionProblem)")
    case .journalMissing: (nil, "the journal is missing, with all commits that had no files yet")
    case .notAFile where Journal.isJournalOrList(name): (nil, "the journal is not a regular file")
    case .foreign, .notAFile, .ahead, .tornTail: nil
    }
  }
}

extension StoreReport.Files {
  init(_ directory: DirectoryReport, in path: String) {
    self.init(
      files: directory.files, count: directory.entries, byteCount: directory.valueBytes, revision: directory.revision)
    for issue in directory.issues {
      if let (offset, reason) = issue.damage {
        add(.init(path: path + "/" + issue.name, offset: offset, reason: reason))
      } else {
        addRemark("\(path)/\(issue)")
      }
    }
  }
}

/// Why a directory store can't be opened.
package enum DirectoryError: Error, Equatable, Sendable {
  /// A call on that path failed.
  case system(path: String, SystemError)
  /// A journal is damaged where it was on disk, or is missing, so not by a crash. Nothing was changed.
  case damaged(path: String, offset: Int, reason: String)
  /// A later version of this program has written the file. Nothing was changed.
  case laterVersion(path: String)
  /// A file can't be read. Its entry would be absent, and then be overwritten. Nothing was changed.
  case unreadable(path: String, reason: String)
  /// The entries don't fit into memory.
  case storage(StorageError)
}

extension DirectoryError: FileEngineError {
  var isLaterVersion: Bool { if case .laterVersion = self { true } else { false } }

  var path: String? {
    switch self {
    case .damaged(let path, _, _), .laterVersion(let path), .unreadable(let path, _), .system(let path, _): path
    case .storage: nil
    }
  }
}

extension DirectoryError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .system(let path, let error): "\(path): \(error)"
    case .damaged(let path, let offset, let reason): "\(path) is damaged at byte \(offset): \(reason)"
    case .laterVersion(let path): "\(path) \(laterVersionProblem)"
    case .unreadable(let path, let reason):
      "\(path) can't be read (\(reason)); run \"larder check\" to see what is intact"
    case .storage(let error): error.description
    }
  }
}
