import EntryFiles
import Foundation

/// What becomes of the files of one key.
struct EntryFileChange {
  let key: EntryKey
  /// The files that the key has afterwards.
  let files: FolderIndex.Files?
  let fileChanges: [FileChange]
  /// Whether the file that holds the key comes or goes too.
  let hasKeyFile: Bool

  /// A new value takes the place of whatever there was.
  init(of key: EntryKey, was old: FolderIndex.Files?, isList: Bool, revision: UInt64, content: Data) {
    self.key = key
    let bytes = Array(key.text.utf8)
    let name = old?.name ?? EntryName(of: bytes)
    let version = unsafe content.withUnsafeBytes {
      unsafe EntryVersion(of: name, isList: isList, revision: revision, expiry: 0, value: $0)
    }
    files = FolderIndex.Files(name: name, newest: version)
    hasKeyFile = name.isDigest && old == nil
    let keyFile: [FileChange] = hasKeyFile ? [.write(name.keyFileName, Data(bytes))] : []
    let removals = (old?.names ?? []).map(FileChange.remove)
    fileChanges = keyFile + [.write(version.fileName(name), content)] + removals
  }

  /// All of a key's files go.
  init(removing key: EntryKey, was old: FolderIndex.Files) {
    self.key = key
    files = nil
    hasKeyFile = old.name.isDigest
    fileChanges = (old.names + (hasKeyFile ? [old.name.keyFileName] : [])).map(FileChange.remove)
  }
}
