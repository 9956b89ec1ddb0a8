import ArgumentParser
import Larder

struct Stores: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists the stores.",
    discussion: """
      A table on a terminal, else one line of JSON a store: {"name","engine","entries"}, "durability" in those that survive \
      the server's end, and "limit" in those that have one.

      Example: larder stores
      """)

  @OptionGroup var connection: ConnectionOptions

  func run() async throws {
    let stores = try await connection.client().stores()
    var output = Output()
    if Output.showsTables {
      var table = Table("STORE", "ENGINE", "DURABILITY", "LIMIT", "ENTRIES")
      for store in stores {
        table.add(store.name, store.engine, store.durability ?? "-", store.limit ?? "-", String(store.entries))
      }
      try output.writeLine(stores.isEmpty ? "There are no stores; 'larder create NAME memory' makes one." : table.text)
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
    abstract: "Makes a store.",
    discussion: """
      An ENGINE keeps the store: memory, which nothing survives, or on a server with a data directory (larderd --data) log or \
      directory, a file for each entry. These two take a durability: what is promised of a write that was answered.
        log?durability=always       it is on the disk; this is the default
        log?durability=interval:1s  it will be within that time: 1ms to 3600s
        log?durability=none         it will be when the system sees fit
      Memory takes a limit: what its entries may take, a whole number of KiB, MiB or GiB. Beyond it entries go that were not used lately.
        memory?limit=256MiB
      Put it in quotes, since shells have a meaning for question marks. A store that is there already is refused with exit status 3.

      Example: larder create items memory
      Example: larder create sessions 'log?durability=interval:1s'
      """)

  @OptionGroup var connection: ConnectionOptions

  @Argument(help: "1 to 128 ASCII letters, digits, '.', '_' and '-', the first of them a letter, a digit or '_'.")
  var name: String

  @Argument(
    help: "What keeps the store: memory, log or directory, perhaps with a limit or a durability.",
    completion: .list(EngineChoices.all))
  var engine: String

  func run() async throws {
    try await connection.client().createStore(name, engine: engine)
  }
}

/// What a shell offers for an engine.
enum EngineChoices {
  static let all =
    ["memory", "memory?limit=256MiB"]
    + ["log", "directory"].flatMap { engine in
      [engine] + ["always", "interval:1s", "none"].map { "\(engine)?durability=\($0)" }
    }
}

struct Drop: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Drops a store and all its entries, for everyone.",
    discussion: "Example: larder drop items")

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

  func run() async throws {
    try await connection.client().dropStore(store.name)
  }
}
