import ArgumentParser
import Larder
import Platform

struct Top: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the busiest connections.",
    discussion: """
      The connections with the most requests per second come first. A connection to a Unix socket is identified by its \
      process, the process's name and its user; any other by its address. The name that the client gave itself is \
      shown, too.

      Prints a table on a terminal, otherwise one line of JSON each: \
      {"connection","requestsPerSecond","requests","receivedBytes","sentBytes",\
      "waitingBytes","ageMilliseconds","process","command","user","address","client"}, \
      the last five if known.

      With --watch, repeats the output until interrupted.

      Example: larder top --limit 5
      """)

  @OptionGroup private var connection: ConnectionOptions

  @Option(
    parsing: .unconditional, help: "The number of connections to show, from 1 to 256. (default: 20)",
    transform: WholeNumber.parse)
  private var limit: UInt = 20

  @OptionGroup private var watching: WatchingOptions

  func validate() throws {
    guard (1...256).contains(limit) else { throw ValidationError("--limit must be from 1 to 256") }
  }

  func run() async throws {
    let client = try connection.client()
    if watching.watch { return try await watch(client, address: connection.address()) }
    try Self.print(try await client.busiestConnections(limit: Int(limit)))
  }

  /// Shows the connections repeatedly until interrupted: a page on a terminal, otherwise lines of JSON each time.
  private func watch(_ client: LarderClient, address: Address) async throws {
    let (pause, limit) = (watching.pause, Int(limit))
    try await runUntilInterrupted {
      guard Output.showsTables else {
        while true {
          try Self.print(try await client.busiestConnections(limit: limit))
          try await Task.sleep(for: pause)
        }
      }
      var rows: [String] = []
      let screen = AlternateScreen()
      while true {
        var header = ["larderd at \(address), busiest connections"]
        // Keep running while the server can't be reached.
        do throws(LarderError) {
          let connections = try await client.busiestConnections(limit: max(1, min(limit, screen.size.height - 6)))
          rows = Self.table(connections).text.split(separator: "\n").map(String.init)
        } catch {
          header.append("(!) \(CommandFailure(error).message)")
        }
        screen.show(header + [""] + rows + ["", "Press Ctrl-C to quit"])
        try await Task.sleep(for: pause)
      }
    }
  }

  private static func print(_ connections: [ConnectionDescription]) throws {
    var output = Output()
    guard !Output.showsTables else { return try output.writeLine(table(connections).text) }
    for connection in connections { append(connection, to: &output.bytes) }
    try output.flush()
  }

  // MARK: For people

  private static func table(_ connections: [ConnectionDescription]) -> Table {
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

  /// Returns, for example, `4711 billing`, or `4711 python3 (billing)` if the client gave itself a name.
  private static func peer(_ connection: ConnectionDescription) -> String {
    let peer = connection.address ?? connection.process.map { "\($0) \(connection.command ?? "(ended)")" } ?? "?"
    let hasOwnName = !connection.client.isEmpty && connection.client != connection.command
    return hasOwnName ? "\(peer) (\(connection.client))" : peer
  }

  // MARK: For programs

  /// Appends a connection as a line of JSON.
  private static func append(_ connection: ConnectionDescription, to output: inout [UInt8]) {
    let numbers = [
      ("connection", connection.number), ("requestsPerSecond", connection.requestsPerSecond),
      ("requests", connection.requests), ("receivedBytes", connection.receivedBytes),
      ("sentBytes", connection.sentBytes), ("waitingBytes", connection.waitingBytes),
      ("ageMilliseconds", UInt64(connection.age / .milliseconds(1))),
    ]
    for (index, number) in numbers.enumerated() {
      output.append(index == 0 ? "{\"" : ",\"")
      output.append(contentsOf: number.0.utf8)
      output.append("\":")
      output.append(number: number.1)
    }
    if let process = connection.process {
      output.append(",\"process\":")
      output.append(number: UInt64(process))
    }
    if let user = connection.user {
      output.append(",\"user\":")
      output.append(number: UInt64(user))
    }
    let texts = [("command", connection.command), ("address", connection.address), ("client", connection.client)]
    for (name, text) in texts {
      guard let text else { continue }
      output.append(contentsOf: ",\"\(name)\":".utf8)
      output.append(jsonString: text)
    }
    output.append("}\n")
  }
}
