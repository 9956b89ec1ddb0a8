import ArgumentParser
import Larder

struct Stores: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists the stores.",
    discussion: """
      A table on a terminal, else one line of JSON a store: {"name","engine","entries"}.

      Example: larder stores
      """)

  @OptionGroup var connection: ConnectionOptions

  func run() async throws {
    let stores = try await connection.client().stores()
    var output = Output()
    if Output.isTerminal {
      var table = Table("STORE", "ENGINE", "ENTRIES")
      for store in stores { table.add(store.name, store.engine, String(store.entries)) }
      try output.writeLine(stores.isEmpty ? "There are no stores; 'larder create NAME memory' makes one." : table.text)
    } else {
      for store in stores {
        output.bytes.append("{\"name\":")
        output.bytes.append(jsonString: store.name)
        output.bytes.append(",\"engine\":")
        output.bytes.append(jsonString: store.engine)
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
      A store that is there already is refused with exit status 3.

      Example: larder create items memory
      """)

  @OptionGroup var connection: ConnectionOptions

  @Argument(help: "1 to 128 ASCII letters, digits, '.', '_' and '-', the first of them a letter, a digit or '_'.")
  var name: String

  @Argument(help: "What keeps the store: memory.", completion: .list(["memory"]))
  var engine: String

  func run() async throws {
    try await connection.client().createStore(name, engine: engine)
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
