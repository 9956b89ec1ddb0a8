import ArgumentParser
import Platform
import Storage

struct Check: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Checks the stores in a data directory for damage.",
    discussion: """
      No server may be using the directory. Nothing in it is changed. Prints a table on a terminal, otherwise one line \
      of JSON for each store: {"store", "engine", "files", "records"|"entries", "indexes", "bytes", \
      "revision", "intact", "damage", "remarks"}. Each damage has a "file", the "offset" of its first byte if known, \
      and "what" is wrong. An unfinished write that a crash left at the end of a log is a remark, not damage. If there \
      is damage, the exit status is 5.

      With --salvage, copies everything intact to a new data directory OUT that larderd can start with. OUT is named \
      OUT.unfinished until it is complete. The lines of JSON then also report what was "copied" and, as far as known, \
      what was lost: "lostBytes" of a log's files, missing "lostFiles", and "lostEntries", the number of writes and \
      deletions that are lost, so that entries are older than they were, absent, or there again.

      Example: larder check /var/lib/larder
      Example: larder check /var/lib/larder --salvage /var/lib/larder.salvaged
      """)

  @Argument(help: "The data directory.", completion: .directory)
  private var dir: String

  @Flag(help: "Copy everything intact to OUT.")
  private var salvage = false

  @Argument(help: "The data directory that --salvage creates.", completion: .directory)
  private var out: String?

  func validate() throws {
    guard salvage == (out != nil) else {
      throw ValidationError(
        salvage ? "--salvage requires the name of a data directory to create" : "a second directory requires --salvage")
    }
  }

  func run() throws {
    let path = absolutePath(dir)
    let directory: DataDirectoryCheck
    do { directory = try DataDirectoryCheck(path) } catch { throw Self.failure(error) }
    let target = try out.map { try SalvageTarget(absolutePath($0), source: path) }
    var reports: [StoreReport] = []
    do {
      for store in directory.stores { reports.append(try check(store, in: directory, target)) }
      try target?.finish()
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      throw CommandFailure(
        .usage, "can't write '\(out ?? "")': \(error); remove \(target?.unfinishedPath ?? "it") and try again")
    }
    try CheckOutput.print(reports, in: dir, salvagedTo: out)
    let damaged = reports.filter { !$0.isIntact }
    guard damaged.isEmpty else { throw CommandFailure(.damaged, Self.advice(damaged, dir, out)) }
  }

  private func check(
    _ store: DataDirectoryCheck.FoundStore, in directory: DataDirectoryCheck, _ target: SalvageTarget?
  ) throws -> StoreReport {
    var progress = Progress(store.engine?.countedItem.plural ?? "entries", total: store.byteCount)
    var (count, bytes) = (0, 0)
    func reportProgress(_ size: Int) {
      count += 1
      bytes += size
      if count & 255 == 0 { progress.show(count, done: bytes) }
    }
    defer { progress.clear() }
    guard let target else { return directory.check(store, onProgress: reportProgress) }
    return try directory.salvage(store, into: target.data, onProgress: reportProgress)
  }

  private static func advice(_ damaged: [StoreReport], _ dir: String, _ out: String?) -> String {
    let stores = damaged.count == 1 ? "the store '\(damaged[0].name)' is" : "\(damaged.count) stores are"
    guard let out else {
      return "\(stores) damaged; copy what is intact with 'larder check \(dir) --salvage OUT', or restore a backup"
    }
    return "\(stores) damaged; everything intact is in \(out), which 'larderd --data \(out)' serves"
  }

  private static func failure(_ error: DataDirectoryError) -> CommandFailure {
    switch error {
    case .inUse(let path, let owner):
      let process = owner.map { "process \($0)" } ?? "another process"
      return CommandFailure(.refused, "the data directory \(path) is in use by \(process); stop that server first")
    default: return CommandFailure(.usage, "\(error)")
    }
  }
}

/// The data directory that `larder check --salvage` creates. It gets its final name when all of it is on disk.
private struct SalvageTarget {
  private let files = LocalFileSystem()
  private let path: String
  let unfinishedPath: String
  let data: DataDirectory

  /// - Parameters:
  ///   - path: An absolute path at which nothing exists.
  ///   - source: The directory that is copied.
  init(_ path: String, source: String) throws {
    self.path = path
    unfinishedPath = path + ".unfinished"
    guard !path.hasPrefix(source + "/") else {
      throw CommandFailure(.usage, "'\(path)' is inside the data directory; choose a path outside it")
    }
    for existing in [path, unfinishedPath] {
      let kind: FileKind?
      do { kind = try files.kind(of: existing) } catch { throw CommandFailure(.usage, "'\(existing)': \(error)") }
      guard kind == nil else {
        throw CommandFailure(.usage, "'\(existing)' already exists; remove it, or choose another path")
      }
    }
    do { data = try DataDirectory.open(unfinishedPath) } catch { throw CommandFailure(.usage, "\(error)") }
  }

  func finish() throws(SystemError) {
    try files.rename(unfinishedPath, to: path)
    try files.syncFolder(folder(of: path))
  }
}
