import Platform

/// A data directory that is looked at, and perhaps copied from. It has the directory's lock, and changes nothing in it.
package struct DataDirectoryCheck {
  /// A store's folder, and what is known of it.
  package struct FoundStore: Sendable {
    package let name: String
    let description: StoreDescription?
    /// Nil when it can't be told.
    package let engine: EngineKind?
    /// Why the description is missing.
    let complaint: StoreReport.Damage?
    /// What its files take, roughly.
    package let byteCount: Int
  }

  private let data: DataDirectory
  package let stores: [FoundStore]

  /// - Parameter path: absolute.
  /// - Throws: `inUse` while a server has it, `notUsable` for what is no data directory.
  package init(
    _ path: String, on fileSystem: any FileSystem = LocalFileSystem()
  ) throws(DataDirectoryError) {
    let data = try DataDirectory.openUnchanged(path, on: fileSystem)
    let names = try data.calling(data.storesPath) { () throws(SystemError) -> [String] in
      guard try fileSystem.kind(of: data.storesPath) != nil else { return [] }
      return try fileSystem.list(data.storesPath)
    }
    self.data = data
    stores = names.sorted().filter { !DataDirectory.isUnfinished($0) }.map { Self.look(at: $0, in: data) }
  }

  private static func look(at text: String, in data: DataDirectory) -> FoundStore {
    let path = data.storesPath + "/" + text
    func unknown(_ what: String) -> FoundStore {
      FoundStore(
        name: text, description: nil, engine: nil, complaint: .init(path: path, offset: nil, what: what), byteCount: 0)
    }
    guard let name = try? StoreName(text), (try? data.fileSystem.kind(of: path)) == .folder else {
      return unknown("this is not the folder of a store; move it away")
    }
    let files = data.filesFolder(of: name)
    let names = (try? data.fileSystem.list(files)) ?? []
    let byteCount = names.reduce(0) { sum, name in
      guard case .file(let count)? = try? data.fileSystem.kind(of: files + "/" + name) else { return sum }
      return sum + count
    }
    do throws(DataDirectoryError) {
      let description = try data.description(of: name)
      return FoundStore(
        name: text, description: description, engine: description.engine, complaint: nil, byteCount: byteCount)
    } catch {
      // What the files are called tells the engine, so that they can be looked at all the same.
      let engine: EngineKind? =
        names.contains { $0.hasSuffix(".log") } ? .log : names.contains(WriteAheadLog.name) ? .directory : nil
      let complaint = StoreReport.Damage(
        path: path + "/" + DataDirectory.descriptionName, offset: nil, what: error.reason)
      return FoundStore(
        name: text, description: nil, engine: engine, complaint: complaint, byteCount: byteCount)
    }
  }

  /// Reads all files of a store.
  /// - Parameter tell: called with how many bytes of records and values were read.
  package func check(_ store: FoundStore, tell: (Int) -> Void) -> StoreReport {
    var report = begin(store)
    guard let name = try? StoreName(store.name), let engine = store.engine else { return report }
    let path = data.filesFolder(of: name)
    do {
      switch engine {
      case .log: report.take(try LogCheck.check(path, files: data.fileSystem, tell: tell))
      case .directory: report.take(try DirectoryCheck.run(path, on: data.fileSystem, tell: tell), in: path)
      case .memory: break
      }
    } catch {
      report.note(path, "it can't be read: \(error)")
    }
    return report
  }

  /// Copies what is intact of a store into another data directory, which has no store of that name. A store whose description is lost
  /// gets one with the durability `always`.
  /// - Throws: when the other directory can't be written.
  package func salvage(
    _ store: FoundStore, into other: DataDirectory, tell: (Int) -> Void
  ) throws -> StoreReport {
    var report = begin(store)
    guard let name = try? StoreName(store.name), let engine = store.engine else { return report }
    let description = StoreDescription(
      name: name, engine: engine, durability: store.description?.durability ?? .always)
    try other.create(description)
    let (path, target) = (data.filesFolder(of: name), other.filesFolder(of: name))
    do {
      switch engine {
      case .log:
        let (log, records) = try LogCheck.salvage(path, to: target, files: data.fileSystem, tell: tell)
        report.take(log)
        report.salvage = .init(
          copied: records, lostBytes: log.segments.reduce(0) { $0 + $1.lostBytes }, lostFiles: log.missing.count)
      case .directory:
        let directory = try DirectoryCheck.salvage(path, to: target, on: data.fileSystem, tell: tell)
        report.take(directory, in: path)
        report.salvage = .init(copied: directory.entries, lostEntries: directory.lostEntries)
      case .memory: break
      }
    } catch let error as LogError where !error.isIn(target) {
      report.note(path, "it can't be read: \(error)")
    } catch let error as DirectoryError where !error.isIn(target) {
      report.note(path, "it can't be read: \(error)")
    }
    return report
  }

  private func begin(_ store: FoundStore) -> StoreReport {
    var report = StoreReport(store.name, engine: store.engine)
    if let complaint = store.complaint { report.damage.append(complaint) }
    return report
  }
}

extension DataDirectoryError {
  /// What is wrong, without the path.
  fileprivate var reason: String {
    switch self {
    case .damagedDescription(_, 0, let reason): reason
    case .damagedDescription(_, let line, let reason): "line \(line): \(reason)"
    case .notUsable(_, let reason): reason
    case .system(_, let error): "\(error)"
    case .inUse, .storeExists, .unknownStore: "\(self)"
    }
  }
}

extension LogError {
  /// Whether it is about that folder.
  fileprivate func isIn(_ folder: String) -> Bool {
    switch self {
    case .damaged(let path, _, _), .failed(let path, _): path.hasPrefix(folder)
    case .noMemory: false
    }
  }
}

extension DirectoryError {
  /// Whether it is about that folder.
  fileprivate func isIn(_ folder: String) -> Bool {
    switch self {
    case .damaged(let path, _, _), .unreadable(let path, _), .system(let path, _): path.hasPrefix(folder)
    case .storage: false
    }
  }
}
