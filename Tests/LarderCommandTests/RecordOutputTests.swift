import Foundation
import Testing

@testable import larder

@Suite struct `Records for programs` {
  /// Returns the output of a command with --watch, which ends at SIGINT, after at least this many lines.
  private func watched(_ server: RunningServer, _ command: String, lines count: Int) throws -> [String] {
    let script = """
      exec 3< <(exec larder \(command) --watch --interval 20ms)
      for ((i = 0; i < \(count); i++)); do read -r -t 10 line <&3 || exit; echo "$line"; done
      kill -INT $!
      """
    return try server.shell(script).lines
  }

  @Test func `stats prints a member or column for each statistic`() throws {
    let server = try RunningServer()
    let json = try server.larder("stats", "items", "--format", "json")
    #expect(try server.larder("stats", "items").text == json.text)
    let csv = try server.larder("stats", "items", "--format", "csv").lines
    let fields = try csv.map { try CSV.fields(in: $0) }
    try #require(fields.count == 2 && fields[0].count == fields[1].count)
    let found = try JSONDecoder().decode([String: UInt64].self, from: Data(json.output))
    #expect(fields[0] == found.keys.sorted() && fields[1] == fields[0].map { String(found[$0]!) })
    let table = try server.larder("stats", "items", "--format", "table", "--color", "always").lines
    #expect(table[0].hasPrefix("\u{1B}[1mSTATISTIC  ") && table.count == 1 + found.count)
  }

  @Test func `top prints a record for each connection`() throws {
    let server = try RunningServer()
    let names = [
      "connection", "requestsPerSecond", "requests", "receivedBytes", "sentBytes", "waitingBytes", "ageMilliseconds",
      "process", "user", "command", "address", "client",
    ]
    let csv = try server.larder("top", "--format", "csv").lines
    #expect(csv.count == 2 && csv[0] == names.joined(separator: ","))
    let fields = try CSV.fields(in: csv[1])
    #expect(fields.count == names.count && fields.suffix(3) == ["larder", "", "larder"])
    #expect(try server.larder("top", "--format", "json").text.hasPrefix(#"{"connection":"#))
    #expect(try server.larder("top", "--format", "table").lines.first?.hasPrefix("NR  REQ/S") == true)
  }

  @Test func `slowlog prints a header for an empty log`() throws {
    let server = try RunningServer()
    #expect(
      try server.larder("slowlog", "--format", "csv").text
        == "millisecondsAgo,microseconds,requests,receivedBytes,operations,store\n")
    #expect(try server.larder("slowlog", "--format", "table").text == "The slow log is empty.\n")
    #expect(try server.larder("slowlog", "--format", "json").text.isEmpty)
  }

  @Test(arguments: ["stats", "stats items", "top"])
  func `watched records in CSV follow one header`(command: String) throws {
    let server = try RunningServer()
    let csv = try watched(server, "\(command) --format csv", lines: 4)
    try #require(csv.count == 4)
    let widths = try csv.map { try CSV.fields(in: $0).count }
    #expect(Set(widths).count == 1 && !csv.dropFirst().contains(csv[0]))
    #expect(try watched(server, command, lines: 3).filter { $0.hasPrefix("{\"") }.count == 3)
  }

  @Test func `watched tables without a terminal are printed whole each time`() throws {
    let server = try RunningServer()
    let lines = try watched(server, "top --format table", lines: 4)
    #expect(lines.count == 4 && lines[0].hasPrefix("NR") && lines[2].hasPrefix("NR"))
    #expect(!lines.joined().contains("\u{1B}"))
  }
}
