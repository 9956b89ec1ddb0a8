import Larder
import Platform

extension Top {
  /// Shows the connections again and again: a page on a terminal, elsewhere their lines each time. Ends with the first interruption.
  func watch(_ client: LarderClient, address: Address) async throws {
    let (pause, limit) = (watching.pause, limit)
    try await untilInterrupted {
      guard Output.showsTables else {
        while true {
          try Self.write(try await client.busiestConnections(atMost: limit))
          try await Task.sleep(for: pause)
        }
      }
      var table: [String] = []
      let screen = Screen()
      while true {
        var head = ["larderd at \(address), its busiest connections"]
        // A server that can't be reached for a while is no reason to end.
        do throws(LarderError) {
          let connections = try await client.busiestConnections(atMost: max(1, min(limit, screen.size.height - 6)))
          table = Self.table(connections).text.split(separator: "\n").map(String.init)
        } catch {
          head.append("(!) \(CommandFailure(error).message)")
        }
        screen.show(head + [""] + table + ["", "^C ends"])
        try await Task.sleep(for: pause)
      }
    }
  }
}
