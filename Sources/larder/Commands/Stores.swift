import ArgumentParser
import Basics
import Larder
import Storage

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
      The ENGINE states where the store keeps its entries:
      \(EngineHelp.engines)
      An option follows the engine as in log?durability=none; further ones follow after '&'.
      \(EngineHelp.options)
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
    help: "The store's engine: \(EngineHelp.names), with options if any.",
    completion: .custom(EngineCompletion.candidates))
  private var engine: String

  func run() async throws {
    do {
      try await connection.client().createStore(name, engine: engine)
    } catch let error as LarderError where error.kind == .illegalArgument {
      let kind = engine.prefix { $0 != "?" }
      let known = [EngineKind].known.map(\.name)
      guard !known.contains(String(kind)) else { throw error }
      throw CommandFailure(error, suggestion: SpellingSuggestion.nearest(to: String(kind), of: known))
    }
  }
}

/// What help says about the engines.
private enum EngineHelp {
  /// The names in a sentence: "memory, log or directory".
  static let names = list([EngineKind].known.map(\.name), "or")

  /// A line for each engine.
  static let engines = table(
    [EngineKind].known.map { engine in
      (engine.name, engine.isRecorded ? "\(engine.summary); needs larderd --data" : engine.summary)
    })

  /// A paragraph for each option, with a line for each example. Engines that share an option share its paragraph.
  static let options = {
    var options: [EngineOption] = []
    for option in [EngineKind].known.flatMap(\.options) where !options.contains(where: { $0.name == option.name }) {
      options.append(option)
    }
    return options.map { option in
      let engines = [EngineKind].known.filter { $0.options.contains { $0.name == option.name } }.map(\.name)
      return "The option \(option.name) of \(list(engines, "and")) states \(option.summary):\n"
        + table(option.examples.map { ("\(engines[0])?\(option.name)=\($0.value)", $0.help) })
    }.joined(separator: "\n")
  }()

  private static func list(_ names: [String], _ conjunction: String) -> String {
    guard names.count > 1 else { return names.joined() }
    return "\(names.dropLast().joined(separator: ", ")) \(conjunction) \(names[names.count - 1])"
  }

  /// Returns indented lines in two columns.
  private static func table(_ rows: [(String, String)]) -> String {
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { "  \($0)\(String(repeating: " ", count: width - $0.count))  \($1)" }.joined(separator: "\n")
  }
}

/// The engines that completion offers.
enum EngineCompletion {
  static let specifications = [EngineKind].known.flatMap { engine in
    [engine.name]
      + engine.options.flatMap { option in option.examples.map { "\(engine)?\(option.name)=\($0.value)" } }
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
      Needs a confirmation: on a terminal, larder asks for it; elsewhere, give --yes.

      Example: larder drop items --yes
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Flag(help: "Drop without asking for a confirmation.")
  private var yes = false

  func run() async throws {
    let client = try connection.client()
    if !yes {
      let count = try await client.store(store.name).count()
      let entries = HumanReadable.amount(Int(clamping: count))
      try await Confirmation.require("Drop '\(store.name)' with \(entries)?")
    }
    try await client.dropStore(store.name)
  }
}
