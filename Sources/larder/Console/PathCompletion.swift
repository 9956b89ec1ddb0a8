import Platform

/// Names of files and folders that begin with what is typed. A folder's ends with a slash.
enum PathCompletion {
  static func candidates(_ prefix: String, foldersOnly: Bool) -> [String] {
    let files = LocalFileSystem()
    let slash = prefix.lastIndex(of: "/")
    let typed = slash.map { String(prefix[...$0]) } ?? ""
    let name = slash.map { String(prefix[prefix.index(after: $0)...]) } ?? prefix
    // The dot at the end follows a link to a folder.
    let folder = absolutePath(typed.isEmpty ? "." : typed) + "/."
    guard let names = try? files.list(folder) else { return [] }
    return names.compactMap { entry in
      guard entry.hasPrefix(name), !entry.hasPrefix(".") || name.hasPrefix(".") else { return nil }
      if (try? files.kind(of: "\(folder)/\(entry)/.")) == .folder { return typed + entry + "/" }
      return foldersOnly ? nil : typed + entry
    }
  }
}
