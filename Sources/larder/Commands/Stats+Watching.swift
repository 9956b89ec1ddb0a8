import Dispatch
import Glibc
import Larder
import Platform

extension Stats {
  /// Shows the figures again and again: a page on a terminal, elsewhere a line of JSON each time. Ends with the first interruption.
  func watch(_ client: LarderClient, address: Address, every interval: Duration) async throws {
    let watching = Task {
      if Output.isTerminal {
        try await Self.showPages(client, address, interval)
      } else {
        while !Task.isCancelled {
          try Self.writeLine(try await figures(client))
          try await Task.sleep(for: interval)
        }
      }
    }
    let interruptions = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { watching.cancel() }
      source.activate()
      return source
    }
    defer { for source in interruptions { source.cancel() } }
    do { try await watching.value } catch  where watching.isCancelled {}
  }

  /// A server that can't be reached for a while is no reason to end.
  private static func showPages(_ client: LarderClient, _ address: Address, _ interval: Duration) async throws {
    var page = StatsPage(address: "\(address)")
    let screen = Screen()
    while !Task.isCancelled {
      do throws(LarderError) {
        page.add(try await sample(client))
      } catch {
        guard error.kind != .cancelled else { return }
        page.add(failure: CommandFailure(error).message)
      }
      screen.show(page.lines(height: screen.size.height))
      try await Task.sleep(for: interval)
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
