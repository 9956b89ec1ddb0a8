import ArgumentParser
import Larder

struct Stats: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the figures of the server, or of a store.",
    discussion: """
      A table on a terminal, else one line of JSON, whose members are the figures. Their names end in their units. The server's \
      are at least uptime_milliseconds, connections, connections_accepted_total, requests_total, stores, memory_bytes, \
      output_bytes; a store's are at least entries, revision, key_bytes, value_bytes, memory_bytes, expiring, snapshots, watches. \
      Stores that survive the server's end have more, of their files: all are listed in Protocol/wire.md, section 6.1.

      Example: larder stats items
      """)

  @OptionGroup var connection: ConnectionOptions

  @Argument(
    help: "A store's name; without it, the figures are the server's.", completion: .custom(StoreCompletion.names))
  var store: String?

  func run() async throws {
    let client = try connection.client()
    let figures: [String: UInt64]
    if let store { figures = try await client.store(store).stats() } else { figures = try await client.stats() }
    let sorted = figures.sorted { $0.key < $1.key }
    var output = Output()
    if Output.showsTables {
      var table = Table("FIGURE", "VALUE", "")
      for (name, value) in sorted { table.add(name, String(value), Readable.figure(name, value)) }
      try output.writeLine(table.text)
    } else {
      for (index, figure) in sorted.enumerated() {
        output.bytes.append(index == 0 ? "{" : ",")
        output.bytes.append(jsonString: figure.key)
        output.bytes.append(":")
        output.bytes.append(number: figure.value)
      }
      try output.writeLine(sorted.isEmpty ? "{}" : "}")
    }
  }
}
