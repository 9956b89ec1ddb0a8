import Larder
import Platform

extension Stats {
  /// Shows the figures again and again: a page on a terminal, elsewhere a line of JSON each time. Ends with the first interruption.
  func watch(_ client: LarderClient, address: Address) async throws {
    let pause = watching.pause
    try await untilInterrupted { [self] in
      guard Output.showsTables else {
        while true {
          try Self.writeLine(try await figures(client))
          try await Task.sleep(for: pause)
        }
      }
      var page = StatsPage(address: "\(address)")
      let screen = Screen()
      while true {
        // A server that can't be reached for a while is no reason to end.
        do throws(LarderError) {
          page.add(try await Self.sample(client))
        } catch {
          page.add(failure: CommandFailure(error).message)
        }
        screen.show(page.lines(height: screen.size.height))
        try await Task.sleep(for: pause)
      }
    }
  }

  private static func sample(_ client: LarderClient) async throws(LarderError) -> StatsPage.Sample {
    let server = try await client.stats()
    var stores: [StatsPage.StoreSample] = []
    for store in try await client.stores() {
      // It may have been dropped meanwhile.
      guard let figures = try? await client.store(store.name).stats() else { continue }
      stores.append(.init(name: store.name, engine: store.engine, figures: figures))
    }
    return StatsPage.Sample(time: Double(monotonicMilliseconds()) / 1_000, server: server, stores: stores)
  }
}
