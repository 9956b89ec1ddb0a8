import ArgumentParser
import Basics
import Larder

struct SlowLog: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slowlog",
    abstract: "Shows when the server took long lately, and for what.",
    discussion: """
      The latest 128 times at which a worker was busy for 10 ms or more before it answered, the latest first. Requests that come together are \
      served together: a line with one request is about that request, one with many about all of them. Keys and values are not recorded. \
      Waiting for the disk is not counted: larderd's metrics have the times of commits.

      A table on a terminal, else one line of JSON each: {"millisecondsAgo","microseconds","requests","receivedBytes","operations","store"}.

      Example: larder slowlog
      """)

  @OptionGroup var connection: ConnectionOptions

  func run() async throws {
    let entries = try await connection.client().slowLog()
    var output = Output()
    guard Output.showsTables else {
      for entry in entries { Self.append(entry, to: &output.bytes) }
      return try output.flush()
    }
    guard !entries.isEmpty else { return try output.writeLine("Nothing has taken long.") }
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
