import ArgumentParser
import Larder

struct Top: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the busiest connections.",
    discussion: """
      Those with the most requests a second first. On a Unix socket a connection is known by the process that made it, its name and user, \
      elsewhere by its address; what the client calls itself is told, too. A table on a terminal, else one line of JSON each: \
      {"connection","requestsPerSecond","requests","receivedBytes","sentBytes","waitingBytes","ageMilliseconds","process","command",\
      "user","address","client"}, the last five where they are known.

      With --watch they are shown again and again until the command is interrupted.

      Example: larder top --limit 5
      """)

  @OptionGroup var connection: ConnectionOptions

  @Option(help: "How many connections, up to 256.")
  var limit = 20

  @OptionGroup var watching: WatchingOptions

  func validate() throws {
    guard (1...256).contains(limit) else { throw ValidationError("--limit takes 1 to 256") }
  }

  func run() async throws {
    let client = try connection.client()
    if watching.watch { return try await watch(client, address: connection.address()) }
    try Self.write(try await client.busiestConnections(atMost: limit))
  }

  static func write(_ connections: [ConnectionDescription]) throws {
    var output = Output()
    guard !Output.showsTables else { return try output.writeLine(table(connections).text) }
    for connection in connections { output.bytes.append(connection) }
    try output.flush()
  }

  static func table(_ connections: [ConnectionDescription]) -> Table {
    var table = Table("NR", "REQ/S", "REQUESTS", "IN", "OUT", "WAITING", "AGE", "USER", "PEER")
    for connection in connections {
      table.add(
        "\(connection.number)", "\(connection.requestsPerSecond)", "\(connection.requests)",
        HumanReadable.bytes(connection.receivedBytes), HumanReadable.bytes(connection.sentBytes),
        HumanReadable.bytes(connection.waitingBytes), HumanReadable.time(seconds: UInt64(connection.age / .seconds(1))),
        connection.user.map(HumanReadable.user) ?? "", peer(connection))
    }
    return table
  }

  /// Such as `4711 billing`, or `4711 python3 (billing)` when the client has a name of its own.
  private static func peer(_ connection: ConnectionDescription) -> String {
    let peer = connection.address ?? connection.process.map { "\($0) \(connection.command ?? "(ended)")" } ?? "?"
    let hasOwnName = !connection.client.isEmpty && connection.client != connection.command
    return hasOwnName ? "\(peer) (\(connection.client))" : peer
  }
}
