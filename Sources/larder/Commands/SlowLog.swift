import ArgumentParser
import Basics
import Larder

struct SlowLog: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "slowlog",
    abstract: "Shows recent slow requests.",
    discussion: """
      Shows the last 128 times that a worker was busy for at least 10 ms (or the setting log.slow) before it replied, \
      latest first. Requests that arrive together are processed together: a line with one request is about that \
      request, a line with several is about all of them. Keys and values are not recorded. Waiting for the disk does \
      not count; larderd's metrics include commit times.

      Prints a table on a terminal, otherwise one line of JSON each: \
      {"millisecondsAgo","microseconds","requests","receivedBytes","operations","store"}, \
      the last if known. With --format csv, these are the columns.

      Example: larder slowlog
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup var outputOptions: OutputOptions

  private static let columns: [RecordOutput<SlowLogEntry>.Column] = [
    .init("millisecondsAgo") { .number($0.ago.wholeMilliseconds) },
    .init("microseconds") { .number(UInt64($0.took / .microseconds(1))) },
    .init("requests") { .number(UInt64($0.requests)) },
    .init("receivedBytes") { .number($0.receivedBytes) },
    .init("operations") { .list($0.operations) },
    .init("store") { $0.store.map { .text($0) } },
  ]

  func run() async throws {
    let entries = try await connection.client().slowLog()
    guard Output.showsTables else {
      var records = RecordOutput(Self.columns)
      return try records.print(entries)
    }
    var table = Table("AGO", "TOOK", "REQUESTS", "RECEIVED", "STORE", "OPERATIONS")
    for entry in entries {
      table.add(
        HumanReadable.time(seconds: UInt64(entry.ago / .seconds(1))),
        HumanReadable.duration(nanoseconds: UInt64(entry.took / .nanoseconds(1))), "\(entry.requests)",
        HumanReadable.bytes(entry.receivedBytes), entry.store ?? "–", entry.operations.joined(separator: " "))
    }
    var output = Output()
    try output.write(table, orIfEmpty: "The slow log is empty.")
  }
}
