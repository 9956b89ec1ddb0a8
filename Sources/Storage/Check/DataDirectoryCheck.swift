import Documents
import Platform

/// A check of the stores in a data directory, which can also copy what is intact. It holds the directory's lock and
/// changes nothing in it.
package struct DataDirectoryCheck {
  /// A store's folder, and what is known about it.
  package struct FoundStore: Sendable {
    package let name: String
    fileprivate let description: StoreDescription?
    /// The engine; nil if it is unknown.
    package let engine: EngineKind?
    /// Why the description is missing.
    fileprivate let descriptionDamage: StoreReport.Damage?
    /// The approximate size of its files.
    package let byteCount: Int
  }

  private let data: DataDirectory
  package let stores: [FoundStore]

  /// - Parameter path: An absolute path.
  /// - Throws: `inUse` while a server has the directory open; `notUsable` if it is not a data directory.
  package init(
    _ path: String, on fileSystem: any FileSystem = LocalFileSystem(), engines: [EngineKind] = .builtIn
  ) throws(DataDirectoryError) {
    let data = try DataDirectory.openUnchanged(path, on: fileSystem, engines: engines)
    self.data = data
    stores = try data.storeFolderNames().map { Self.inspect($0, in: data, engines) }
  }

  private static func inspect(_ folderName: String, in data: DataDirectory, _ engines: [EngineKind]) -> FoundStore {
    let path = data.storesPath + "/" + folderName
    guard let name = try? StoreName(folderName), (try? data.fileSystem.kind(of: path)) == .folder else {
      let damage = StoreReport.Damage(
        path: path, offset: nil, reason: "this is not the folder of a store; move it away")
      return FoundStore(name: folderName, description: nil, engine: nil, descriptionDamage: damage, byteCount: 0)
    }
    let files = data.filesFolder(of: name)
    let fileNames = (try? data.fileSystem.list(files)) ?? []
    let byteCount = fileNames.reduce(0) { sum, name in
      guard case .file(let count)? = try? data.fileSystem.kind(of: files + "/" + name) else { return sum }
      return sum + count
    }
    do throws(DataDirectoryError) {
      let description = try data.description(of: name)
      return FoundStore(
        name: folderName, description: description, engine: description.engine, descriptionDamage: nil,
        byteCount: byteCount)
    } catch {
      // The file names reveal the engine, so the files can be checked all the same.
      let damage = StoreReport.Damage(
        path: path + "/" + DataDirectory.descriptionName, offset: nil, reason: error.reason)
      return FoundStore(
        name: folderName, description: nil, engine: engines.recognizing(fileNames: fileNames),
        descriptionDamage: damage,
        byteCount: byteCount)
    }
  }

  /// Reads all files of a store. What an engine keeps elsewhere isn't checked.
  /// - Parameter onProgress: Called with the size of each piece of records and values that was read.
  package func check(_ store: FoundStore, onProgress: (Int) -> Void) -> StoreReport {
    var report = StoreReport(store.name, engine: store.engine, damage: store.descriptionDamage)
    guard let name = try? StoreName(store.name), let kind = store.engine else { return report }
    _ = indexes(of: name, &report)
    guard let engine = kind.files else { return report }
    let path = data.filesFolder(of: name)
    do {
      report.add(try engine.checkStore(in: path, on: data.fileSystem, progress: onProgress))
    } catch {
      report.addDamage(path, "can't be read: \(error)")
    }
    return report
  }

  /// Returns the definitions of a store's indexes, and adds them to the report, or why they can't be read.
  private func indexes(of name: StoreName, _ report: inout StoreReport) -> [DocumentIndex] {
    do throws(DataDirectoryError) {
      let indexes = try data.indexes(of: name)
      report.indexCount = indexes.count
      return indexes
    } catch {
      report.addDamage(data.indexesPath(of: name), error.reason)
      return []
    }
  }

  /// Copies what is intact of a store into another data directory, which has no store with that name. A store whose
  /// description is lost gets a new one with the default options. What an engine keeps elsewhere isn't copied.
  /// - Parameter onProgress: Called with the size of each piece of records and values that was read.
  /// - Throws: If the other directory can't be written.
  package func salvage(
    _ store: FoundStore, into other: DataDirectory, onProgress: (Int) -> Void
  ) throws -> StoreReport {
    var report = StoreReport(store.name, engine: store.engine, damage: store.descriptionDamage)
    guard let name = try? StoreName(store.name), let kind = store.engine, let engine = kind.files else {
      return report
    }
    try other.create(
      StoreDescription(name: name, specification: store.description?.specification ?? StoreSpecification(kind)))
    let indexes = indexes(of: name, &report)
    if !indexes.isEmpty { try other.setIndexes(indexes, of: name) }
    let (path, target) = (data.filesFolder(of: name), other.filesFolder(of: name))
    do {
      let (files, salvage) = try engine.salvageStore(in: path, to: target, on: data.fileSystem, progress: onProgress)
      report.add(files)
      report.salvage = salvage
    } catch let error as any FileEngineError where !(error.path?.hasPrefix(target) ?? false) {
      report.addDamage(path, "can't be read: \(error)")
    }
    return report
  }
}
