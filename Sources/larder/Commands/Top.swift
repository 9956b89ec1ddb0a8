import ArgumentParser
import Larder
import Platform

struct Top: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the busiest connections.",
    discussion: """
      The connections with the most requests per second come first. A connection to a Unix socket is identified by its \
      process, the process's name and its user; any other by its address. The name that the client gave itself is \
      shown, too.

      Prints a table on a terminal, otherwise one line of JSON each: \
      {"connection","requestsPerSecond","requests","receivedBytes","sentBytes",\
      "waitingBytes","ageMilliseconds","process","user","command","address","client"}, \
      the last five if known. With --format csv, these are the columns.

      With --watch, repeats the output until interrupted, on a terminal also by q; CSV has its header only once.

      Example: larder top --limit 5
      """)

  @OptionGroup private var connection: ConnectionOptions

  @Option(
    parsing: .unconditional, help: "The number of connections to show, from 1 to 256. (default: 20)",
    transform: WholeNumber.parse)
  private var limit: UInt = 20

  @OptionGroup private var watching: WatchingOptions
  @OptionGroup var outputOptions: OutputOptions

  func validate() throws {
    guard (1...256).contains(limit) else { throw ValidationError("--limit must be from 1 to 256") }
  }

  func run() async throws {
    let client = try connection.client()
    if watching.watch { return try await watch(client, of: connection.servers()) }
    var records = RecordOutput(Self.columns)
    try Self.print(try await client.busiestConnections(limit: Int(limit)), &records)
  }

  /// Shows the connections repeatedly until interrupted: in place on a terminal, otherwise one output after another.
  private func watch(_ client: LarderClient, of servers: ServerList) async throws {
    let (pause, limit) = (watching.pause, Int(limit))
    try await runUntilInterrupted {
      guard Output.showsPages else {
        var records = RecordOutput(Self.columns)
        while true {
          try Self.print(try await client.busiestConnections(limit: limit), &records)
          try await Task.sleep(for: pause)
        }
      }
      var rows: [String] = []
      let screen = AlternateScreen()
      while true {
        var header = ["larderd at \(servers), busiest connections"]
        // Keep running while the server can't be reached.
        do throws(LarderError) {
          let connections = try await client.busiestConnections(limit: max(1, min(limit, screen.size.height - 6)))
          rows = Self.table(connections).text.split(separator: "\n").map(String.init)
        } catch {
          header.append("(!) \(CommandFailure(error).message)")
        }
        screen.show(header + [""] + rows + ["", AlternateScreen.hint])
        guard try await screen.wait(for: pause) else { return }
      }
    }
  }

  private static func print(
    _ connections: [ConnectionDescription], _ records: inout RecordOutput<ConnectionDescription>
  ) throws {
    guard Output.showsTables else { return try records.print(connections) }
    var output = Output()
    try output.write(table: table(connections).text)
  }

  // MARK: For people

  private static func table(_ connections: [ConnectionDescription]) -> Table {
    var table = Table(
      header: ["NR", "REQ/S", "REQUESTS", "IN", "OUT", "WAITING", "AGE", "USER", "PEER"],
      omissible: ["REQUESTS", "AGE", "IN", "OUT", "USER", "WAITING"])
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

  private static let columns: [RecordOutput<ConnectionDescription>.Column] = [
    .init("connection") { .number($0.number) },
    .init("requestsPerSecond") { .number($0.requestsPerSecond) },
    .init("requests") { .number($0.requests) },
    .init("receivedBytes") { .number($0.receivedBytes) },
    .init("sentBytes") { .number($0.sentBytes) },
    .init("waitingBytes") { .number($0.waitingBytes) },
    .init("ageMilliseconds") { .number(UInt64($0.age / .milliseconds(1))) },
    .init("process") { $0.process.map { .number(UInt64($0)) } },
    .init("user") { $0.user.map { .number(UInt64($0)) } },
    .init("command") { $0.command.map { .text($0) } },
    .init("address") { $0.address.map { .text($0) } },
    .init("client") { .text($0.client) },
  ]
}
