import ArgumentParser
import Larder

struct Stats: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the figures of the server, or of a store.",
    discussion: """
      A table on a terminal, else one line of JSON, whose members are the figures. Their names end in their units. The server's \
      are at least uptime_milliseconds, connections, connections_accepted_total, requests_total, stores, memory_bytes, \
      output_bytes, received_bytes_total, sent_bytes_total, request_p50_nanoseconds, request_p99_nanoseconds and \
      request_p999_nanoseconds (of the last ten seconds); a store's are at least entries, revision, key_bytes, value_bytes, \
      memory_bytes, expiring, snapshots, watches. Stores that survive the server's end have more, of their files: all are listed in \
      Protocol/wire.md, section 6.1.

      With --watch they are shown again and again until the command is interrupted: on a terminal as a page with rates, durations \
      and all stores, elsewhere as a line of JSON each time.

      Example: larder stats items
      """)

  @OptionGroup var connection: ConnectionOptions

  @Argument(
    help: "A store's name; without it, the figures are the server's.", completion: .custom(StoreCompletion.names))
  var store: String?

  @OptionGroup var watching: WatchingOptions

  func run() async throws {
    let client = try connection.client()
    if watching.watch { return try await watch(client, address: connection.address()) }
    try Self.write(try await figures(client))
  }

  func figures(_ client: LarderClient) async throws(LarderError) -> [String: UInt64] {
    if let store { return try await client.store(store).stats() }
    return try await client.stats()
  }

  private static func write(_ figures: [String: UInt64]) throws {
    guard Output.showsTables else { return try writeLine(figures) }
    var table = Table("FIGURE", "VALUE", "")
    for (name, value) in figures.sorted(by: { $0.key < $1.key }) {
      table.add(name, String(value), HumanReadable.figure(name, value))
    }
    var output = Output()
    try output.writeLine(table.text)
  }

  static func writeLine(_ figures: [String: UInt64]) throws {
    let sorted = figures.sorted { $0.key < $1.key }
    var output = Output()
    for (index, figure) in sorted.enumerated() {
      output.bytes.append(index == 0 ? "{" : ",")
      output.bytes.append(jsonString: figure.key)
      output.bytes.append(":")
      output.bytes.append(number: figure.value)
    }
    try output.writeLine(sorted.isEmpty ? "{}" : "}")
  }
}
