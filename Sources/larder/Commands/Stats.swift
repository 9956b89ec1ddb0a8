import ArgumentParser
import Larder
import Platform

struct Stats: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows statistics of the server or of a store.",
    discussion: """
      Prints a table on a terminal, otherwise one line of JSON with a member for each statistic. Names end in their \
      units. The server's statistics include uptime_milliseconds, connections, connections_accepted_total, \
      requests_total, stores, memory_bytes, output_bytes, received_bytes_total, sent_bytes_total, \
      request_p50_nanoseconds, request_p99_nanoseconds and request_p999_nanoseconds (the last three for the last ten \
      seconds). A store's statistics include entries, revision, written_total, key_bytes, value_bytes, memory_bytes, \
      expiring, snapshots and watches; durable stores have more, about their files.

      With --watch, repeats the output until interrupted: on a terminal, a page with rates, latencies and all stores, \
      or with the statistics and rates of the given STORE; otherwise, a line of JSON each time. Writes are counted by \
      key: a request that writes ten keys counts as ten.

      Example: larder stats items
      Example: larder stats items --watch
      """)

  @OptionGroup private var connection: ConnectionOptions

  @Argument(
    help: "A store's name. (default: show the server's statistics)", completion: .custom(StoreNameCompletion.names))
  private var store: String?

  @OptionGroup private var watching: WatchingOptions

  func run() async throws {
    let client = try connection.client()
    if watching.watch { return try await watch(client, address: connection.address()) }
    try Self.print(try await statistics(from: client))
  }

  private func statistics(from client: LarderClient) async throws(LarderError) -> [String: UInt64] {
    if let store { return try await client.store(store).stats() }
    return try await client.stats()
  }

  private static func print(_ statistics: [String: UInt64]) throws {
    guard Output.showsTables else { return try printLine(statistics) }
    var table = Table("STATISTIC", "VALUE", "")
    for (name, value) in statistics.sorted(by: { $0.key < $1.key }) {
      table.add(name, String(value), HumanReadable.statistic(name, value))
    }
    var output = Output()
    try output.writeLine(table.text)
  }

  private static func printLine(_ statistics: [String: UInt64]) throws {
    let sorted = statistics.sorted { $0.key < $1.key }
    var output = Output()
    for (index, statistic) in sorted.enumerated() {
      output.bytes.append(index == 0 ? "{" : ",")
      output.bytes.append(jsonString: statistic.key)
      output.bytes.append(":")
      output.bytes.append(number: statistic.value)
    }
    try output.writeLine(sorted.isEmpty ? "{}" : "}")
  }

  // MARK: Watching

  /// Shows the statistics repeatedly until interrupted: a page on a terminal, otherwise a line of JSON each time.
  private func watch(_ client: LarderClient, address: Address) async throws {
    let pause = watching.pause
    try await runUntilInterrupted { [self] in
      guard Output.showsTables else {
        while true {
          try Self.printLine(try await statistics(from: client))
          try await Task.sleep(for: pause)
        }
      }
      if let store {
        try await Self.watch(StorePage(store: store, address: "\(address)"), client.store(store), pause)
      } else {
        try await Self.watch(StatsPage(address: "\(address)"), client, pause)
      }
    }
  }

  private static func watch(_ page: consuming StatsPage, _ client: LarderClient, _ pause: Duration) async throws {
    let screen = AlternateScreen()
    while true {
      // Keep running while the server can't be reached.
      do throws(LarderError) {
        page.add(try await sample(client))
      } catch {
        page.add(failure: CommandFailure(error).message)
      }
      screen.show(page.lines(height: screen.size.height))
      try await Task.sleep(for: pause)
    }
  }

  private static func watch(_ page: consuming StorePage, _ store: RemoteStore, _ pause: Duration) async throws {
    // Fails now if there is no such store.
    page.add(try await store.stats(), time: seconds)
    let screen = AlternateScreen()
    while true {
      screen.show(page.lines(height: screen.size.height))
      try await Task.sleep(for: pause)
      do throws(LarderError) {
        page.add(try await store.stats(), time: seconds)
      } catch {
        page.add(failure: CommandFailure(error).message)
      }
    }
  }

  /// The time of a monotonic clock.
  private static var seconds: Double { Double(monotonicMilliseconds()) / 1_000 }

  private static func sample(_ client: LarderClient) async throws(LarderError) -> StatsPage.Sample {
    let server = try await client.stats()
    var stores: [StatsPage.StoreSample] = []
    for store in try await client.stores() {
      // The store may have been dropped since.
      guard let statistics = try? await client.store(store.name).stats() else { continue }
      stores.append(.init(name: store.name, engine: store.engine, statistics: statistics))
    }
    return StatsPage.Sample(time: seconds, server: server, stores: stores)
  }
}
