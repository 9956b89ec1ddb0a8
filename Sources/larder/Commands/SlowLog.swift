import ArgumentParser
import Basics
import Larder

struct SlowLog: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slowlog",
    abstract: "Shows recent slow requests.",
    discussion: """
      Shows the last 128 times that a worker was busy for at least 10 ms (or the setting log.slow) before it replied, \
      latest first. Requests that arrive together are processed together: a line with one request is about that \
      request, a line with several is about all of them. Keys and values are not recorded. Waiting for the disk does \
      not count; larderd's metrics include commit times.

      Prints a table on a terminal, otherwise one line of JSON each: \
      {"millisecondsAgo","microseconds","requests","receivedBytes","operations","store"}.

      Example: larder slowlog
      """)

  @OptionGroup private var connection: ConnectionOptions

  func run() async throws {
    let entries = try await connection.client().slowLog()
    var output = Output()
    guard Output.showsTables else {
      for entry in entries { Self.append(entry, to: &output.bytes) }
      return try output.flush()
    }
    guard !entries.isEmpty else { return try output.writeLine("The slow log is empty.") }
    var table = Table("AGO", "TOOK", "REQUESTS", "RECEIVED", "STORE", "OPERATIONS")
    for entry in entries {
      table.add(
        HumanReadable.time(seconds: UInt64(entry.ago / .seconds(1))),
        HumanReadable.duration(nanoseconds: UInt64(entry.took / .nanoseconds(1))), "\(entry.requests)",
        HumanReadable.bytes(entry.receivedBytes), entry.store ?? "–", entry.operations.joined(separator: " "))
    }
    try output.writeLine(table.text)
  }

  private static func append(_ entry: SlowLogEntry, to output: inout [UInt8]) {
    output.append("{\"millisecondsAgo\":")
    output.append(number: entry.ago.wholeMilliseconds)
    output.append(",\"microseconds\":")
    output.append(number: UInt64(entry.took / .microseconds(1)))
    output.append(",\"requests\":")
    output.append(number: UInt64(entry.requests))
    output.append(",\"receivedBytes\":")
    output.append(number: entry.receivedBytes)
    for (index, operation) in entry.operations.enumerated() {
      output.append(index == 0 ? ",\"operations\":[" : ",")
      output.append(jsonString: operation)
    }
    output.append("]")
    if let store = entry.store {
      output.append(",\"store\":")
      output.append(jsonString: store)
    }
    output.append("}\n")
  }
}
