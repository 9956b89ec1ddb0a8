import ArgumentParser
import Larder

struct Ping: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Checks that the server responds.",
    discussion: """
      Prints the round-trip time of a request, not counting the time to connect.

      Example: larder ping
      """)

  @OptionGroup private var connection: ConnectionOptions

  func run() async throws {
    let client = try connection.client()
    try await client.ping()
    let clock = ContinuousClock()
    let start = clock.now
    try await client.ping()
    let microseconds = Int(start.duration(to: clock.now) / .microseconds(1))
    let fraction = String(1_000 + microseconds % 1_000).dropFirst()
    var output = Output()
    try output.writeLine("\(microseconds / 1_000).\(fraction) ms")
  }
}
