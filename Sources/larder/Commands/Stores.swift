import ArgumentParser
import Basics
import Larder

struct Stores: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists the stores.",
    discussion: """
      Prints a table on a terminal, otherwise one line of JSON for each store: {"name","engine","entries"}, with \
      "durability" if the store is durable and "limit" if it has a limit. A store whose files are damaged, so that \
      the server does not serve it, has the engine damaged.

      Example: larder stores
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup var outputOptions: OutputOptions

  func run() async throws {
    let stores = try await connection.client().stores()
    var output = Output()
    if Output.showsRows {
      var table = Table("STORE", "ENGINE", "DURABILITY", "LIMIT", "ENTRIES")
      for store in stores {
        table.add(store.name, store.engine, store.durability ?? "-", store.limit ?? "-", String(store.entries))
      }
      try output.write(table, orIfEmpty: "There are no stores; 'larder create NAME memory' creates one.")
    } else {
      for store in stores {
        output.bytes.append("{\"name\":")
        output.bytes.append(jsonString: store.name)
        output.bytes.append(",\"engine\":")
        output.bytes.append(jsonString: store.engine)
        if let durability = store.durability {
          output.bytes.append(",\"durability\":")
          output.bytes.append(jsonString: durability)
        }
        if let limit = store.limit {
          output.bytes.append(",\"limit\":")
          output.bytes.append(jsonString: limit)
        }
        output.bytes.append(",\"entries\":")
        output.bytes.append(number: store.entries)
        output.bytes.append("}\n")
      }
      try output.flush()
    }
  }
}

struct Create: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Creates a store.",
    discussion: """
      The ENGINE is memory, whose stores do not survive a restart, or, on a server with a data directory (larderd \
      --data), log or directory, which has one file for each entry. The durable engines, log and directory, take a \
      durability, which states when a write is on disk:
        log?durability=always       before the server replies (default)
        log?durability=interval:1s  at most this much later: 1ms to 3600s
        log?durability=none         when the operating system writes it
      The memory engine takes a limit on the memory of its entries, a whole number of KiB, MiB or GiB. Above the \
      limit, it evicts the least recently used entries (approximately).
        memory?limit=256MiB
      Quote an ENGINE with options, because shells interpret question marks. If the store already exists, the exit \
      status is 3.

      Example: larder create items memory
      Example: larder create sessions 'log?durability=interval:1s'
      """)

  @OptionGroup private var connection: ConnectionOptions

  // Without a list, the completion script for fish would offer the engines here instead of after the name.
  @Argument(
    help: "1 to 128 ASCII letters, digits, '.', '_' and '-'; the first is a letter, a digit or '_'.",
    completion: .list([]))
  private var name: String

  @Argument(
    help: "The store's engine: memory, log or directory, with an optional limit or durability.",
    completion: .custom(EngineCompletion.candidates))
  private var engine: String

  func run() async throws {
    do {
      try await connection.client().createStore(name, engine: engine)
    } catch let error as LarderError where error.kind == .illegalArgument {
      let kind = engine.prefix { $0 != "?" }
      let known = EngineCompletion.specifications.filter { !$0.contains("?") }
      guard !known.contains(String(kind)) else { throw error }
      throw CommandFailure(error, suggestion: SpellingSuggestion.nearest(to: String(kind), of: known))
    }
  }
}

/// The engines that completion offers.
enum EngineCompletion {
  static let specifications =
    ["memory", "memory?limit=256MiB"]
    + ["log", "directory"].flatMap { engine in
      [engine] + ["always", "interval:1s", "none"].map { "\(engine)?durability=\($0)" }
    }

  /// Returns all of them to a shell, which chooses those that match. In zsh, a colon would begin a description; fish
  /// would expand the question marks of a list in its script.
  @Sendable
  static func candidates(_ words: [String], _ index: Int, _ prefix: String) -> [String] {
    CompletionShell.requesting == .zsh ? specifications.map { $0.replacing(":", with: "\\:") } : specifications
  }
}

struct Drop: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Drops a store and all its entries.",
    discussion: """
      On a terminal, larder asks for a confirmation first, unless --yes is given.

      Example: larder drop items
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Flag(help: "Drop without asking for a confirmation.")
  private var yes = false

  func run() async throws {
    let client = try connection.client()
    if !yes, await Confirmation.isPossible {
      let count = try await client.store(store.name).count()
      let entries = "\(HumanReadable.number(Int(clamping: count))) \(count == 1 ? "entry" : "entries")"
      try await Confirmation.require("Drop '\(store.name)' with \(entries)?")
    }
    try await client.dropStore(store.name)
  }
}
