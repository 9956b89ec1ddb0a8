import Platform

/// The list of stores. A store is there from the renaming of its folder on, and gone with the renaming of its folder, so that a crash
/// leaves it whole or not at all.
extension DataDirectory {
  /// The stores that there are, by name.
  /// - Throws: `damagedDescription` when one of them can't be told; `notUsable` for what is no store's folder.
  package func stores() throws(DataDirectoryError) -> [StoreDescription] {
    let names = try calling(storesPath) { () throws(SystemError) in try fileSystem.list(storesPath) }
    var stores: [StoreDescription] = []
    for text in names.sorted() where !Self.isUnfinished(text) {
      let path = storesPath + "/" + text
      guard let name = try? StoreName(text),
        try calling(path, { () throws(SystemError) in try fileSystem.kind(of: path) }) == .folder
      else { throw .notUsable(path: path, reason: "this is not the folder of a store; move it away") }
      stores.append(try description(of: name))
    }
    return stores
  }

  /// What is remembered of a store. Throws `unknownStore` and `damagedDescription`.
  package func description(of name: StoreName) throws(DataDirectoryError) -> StoreDescription {
    let path = folder(of: name) + "/" + Self.descriptionName
    let bytes: [UInt8] = try calling(path) { () throws(SystemError) in
      guard try fileSystem.kind(of: path) != nil else { return [] }
      return try fileSystem.open(path, .reading).bytes(at: 0, count: 4_096)
    }
    if bytes.isEmpty, try calling(path, { () throws(SystemError) in try fileSystem.kind(of: folder(of: name)) }) == nil
    {
      throw .unknownStore(name)
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .damagedDescription(path: path, line: 0, reason: "it is not UTF-8 text")
    }
    do throws(StoreDescription.Mistake) {
      let description = try StoreDescription(reading: text)
      guard description.name == name else {
        throw StoreDescription.Mistake(line: 0, reason: "it describes a store \"\(description.name)\"")
      }
      return description
    } catch {
      throw .damagedDescription(path: path, line: error.line, reason: error.reason)
    }
  }

  /// Remembers a new store, and makes the folder for its engine's files. It is on the disk when this returns.
  /// - Throws: `storeExists`.
  package func create(_ description: StoreDescription) throws(DataDirectoryError) {
    let path = folder(of: description.name)
    let unfinished = storesPath + "/" + Self.newPrefix + description.name.text
    guard try calling(path, { () throws(SystemError) in try fileSystem.kind(of: path) }) == nil else {
      throw .storeExists(description.name)
    }
    try calling(path) { () throws(SystemError) in
      try fileSystem.removeAll(unfinished)
      try fileSystem.makeFolder(unfinished)
      try fileSystem.makeFolder(unfinished + "/" + Self.filesName)
      try fileSystem.makeFile(
        unfinished + "/" + Self.descriptionName, through: unfinished + "/.new", Array(description.text.utf8))
      try fileSystem.syncFolder(unfinished)
      try fileSystem.rename(unfinished, to: path)
      try fileSystem.syncFolder(storesPath)
    }
  }

  /// Forgets a store for good, and removes its files. Nobody may have it open. If removing fails, or a crash cuts it off, the store is gone
  /// all the same, and its files go when the data directory is next opened.
  package func drop(_ name: StoreName) throws(DataDirectoryError) {
    let path = folder(of: name)
    let dropped = storesPath + "/" + Self.droppedPrefix + name.text
    guard try calling(path, { () throws(SystemError) in try fileSystem.kind(of: path) }) != nil else {
      throw .unknownStore(name)
    }
    try calling(path) { () throws(SystemError) in
      // What an earlier drop of this name has left would be in the way.
      try fileSystem.removeAll(dropped)
      try fileSystem.rename(path, to: dropped)
      try fileSystem.syncFolder(storesPath)
    }
    try? fileSystem.removeAll(dropped)
  }

  func removeUnfinished() throws(DataDirectoryError) {
    try calling(storesPath) { () throws(SystemError) in
      for name in try fileSystem.list(storesPath) where Self.isUnfinished(name) {
        try fileSystem.removeAll(storesPath + "/" + name)
      }
    }
  }

  static func isUnfinished(_ name: String) -> Bool {
    name.hasPrefix(newPrefix) || name.hasPrefix(droppedPrefix)
  }
}

extension FileSystem {
  /// Removes what there is under a path, with all that is in it if it is a folder. Links go, and what they point to stays.
  func removeAll(_ path: String) throws(SystemError) {
    switch try kind(of: path) {
    case nil: return
    case .folder?:
      for name in try list(path) { try removeAll(path + "/" + name) }
      try removeFolder(path)
    case .file?, .other?: try remove(path)
    }
  }
}
