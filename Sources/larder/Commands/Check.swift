import ArgumentParser
import Platform
import Storage

struct Check: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Reads the stores in a data directory, and tells what is intact.",
    discussion: """
      No server may have the directory; nothing in it is changed. A table on a terminal, else one line of JSON a store: {"store", \
      "engine", "files", "records"|"entries", "bytes", "revision", "intact", "damage", "remarks"}. Each damage has its "file", the \
      "offset" of its first byte where there is one, and "what" it is. What a crash leaves at the end of a log is no damage, but a \
      remark. With damage, the exit status is 5.

      With --salvage, all that is intact is copied into a new data directory OUT, which larderd can start on. It is named OUT.unfinished \
      until all of it is there. Lines of JSON then also have what was "copied", and what was lost as far as is known: "lostBytes" of \
      a log's files, "lostEntries" of a directory store, "lostFiles" that are missing.

      Example: larder check /var/lib/larder
      Example: larder check /var/lib/larder --salvage /var/lib/larder.salvaged
      """)

  @Argument(help: "The data directory.", completion: .directory)
  var dir: String

  @Flag(help: "Copy what is intact into OUT.")
  var salvage = false

  @Argument(help: "The data directory to make with --salvage.", completion: .directory)
  var out: String?

  func validate() throws {
    guard salvage == (out != nil) else {
      throw ValidationError(
        salvage ? "--salvage needs the name of a data directory to make" : "a second directory goes with --salvage")
    }
  }

  func run() throws {
    let path = absolutePath(dir)
    let found: DataDirectoryCheck
    do { found = try DataDirectoryCheck(path) } catch { throw Self.failure(error) }
    let target = try out.map { try SalvageTarget(absolutePath($0), beside: path) }
    var reports: [StoreReport] = []
    do {
      for store in found.stores { reports.append(try look(at: store, of: found, target)) }
      try target?.finish()
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      throw CommandFailure(
        .usage, "can't write '\(out ?? "")': \(error); remove \(target?.unfinished ?? "it") and try again")
    }
    try CheckOutput.tell(reports, in: dir, salvagedTo: out)
    let damaged = reports.filter { !$0.isIntact }
    guard damaged.isEmpty else { throw CommandFailure(.damaged, Self.advice(damaged, dir, out)) }
  }

  private func look(
    at store: DataDirectoryCheck.FoundStore, of found: DataDirectoryCheck, _ target: SalvageTarget?
  ) throws -> StoreReport {
    var progress = Progress(store.engine?.countedItem.plural ?? "entries", total: store.byteCount)
    var (count, bytes) = (0, 0)
    func tell(_ size: Int) {
      count += 1
      bytes += size
      if count & 255 == 0 { progress.show(count, done: bytes) }
    }
    defer { progress.clear() }
    guard let target else { return found.check(store, tell: tell) }
    return try found.salvage(store, into: target.data, tell: tell)
  }

  private static func advice(_ damaged: [StoreReport], _ dir: String, _ out: String?) -> String {
    let stores = damaged.count == 1 ? "the store '\(damaged[0].name)' is" : "\(damaged.count) stores are"
    guard let out else {
      return "\(stores) damaged; 'larder check \(dir) --salvage OUT' copies what is intact, or restore a backup"
    }
    return "\(stores) damaged; what is intact is in \(out), and 'larderd --data \(out)' serves it"
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
