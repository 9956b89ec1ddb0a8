/// What there is in a directory store's folder, and what of it is odd.
package struct DirectoryReport: Equatable, Sendable {
  /// Something that the store didn't leave behind so. Nothing odd is ever removed or changed, but by a write to the same key.
  package struct Finding: Equatable, Sendable {
    package let name: String
    package let oddity: Oddity
  }

  package enum Oddity: Equatable, Sendable {
    /// The name is none of the store's.
    case foreign
    /// A link, a folder, a socket … of a name that a file of the store could have. It is not followed.
    case notAFile
    /// The content isn't what was written under that name: it was damaged or edited. The key counts as absent.
    case changed
    /// The file with the key is missing or doesn't hold it. The entry counts as absent.
    case keyUnknown
    /// Reading it failed, for that reason. A store that has such a file is not opened: the key would be absent, and then written over.
    case unreadable(String)
    /// Its revision is one that the store didn't give: it was put there by hand. It is an entry all the same.
    case ahead
    /// The journal is damaged from there on, where it had been on the disk. Commits behind are lost unless their files were written.
    case damaged(offset: Int, reason: String)
    /// There are entries and no journal: revisions of deleted entries may be given again.
    case journalMissing
    /// The journal's last bytes, from there on, were being written when the process or the machine ended. They are left out.
    case tornTail(offset: Int)
  }

  /// Entries whose files or journal records are intact and that haven't expired.
  package internal(set) var entries = 0
  package internal(set) var valueBytes = 0
  /// All there is in the folder, whatever it is.
  package internal(set) var files = 0
  package internal(set) var revision: UInt64 = 0
  /// Operations of the journal whose files weren't known to be on the disk.
  package internal(set) var replayed = 0
  /// Temporary files, replaced entries and keys of no entry, as a crash leaves them; opening removes them.
  package internal(set) var leftovers = 0
  package internal(set) var findings: [Finding] = []

  package var isClean: Bool { findings.isEmpty }

  mutating func note(_ name: String, _ oddity: Oddity) { findings.append(Finding(name: name, oddity: oddity)) }
}

extension DirectoryReport.Finding: CustomStringConvertible {
  package var description: String {
    switch oddity {
    case .foreign: "\(name): not a file of the store; left alone"
    case .notAFile: "\(name): not a regular file; left alone"
    case .changed: "\(name): damaged or edited, its checksum doesn't fit; the key counts as absent"
    case .keyUnknown: "\(name): the file with its key is missing or damaged; the entry counts as absent"
    case .unreadable(let reason): "\(name): can't be read (\(reason)); the store is not opened until it can"
    case .ahead: "\(name): a revision that the store didn't give; taken as an entry"
    case .damaged(let offset, let reason): "\(name): damaged at byte \(offset): \(reason)"
    case .journalMissing: "\(name): missing; revisions of deleted entries may be given again"
    case .tornTail(let offset): "\(name): unfinished write at byte \(offset); left out"
    }
  }
}
