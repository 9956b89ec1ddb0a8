import ArgumentParser
import Larder
import Platform

struct Stats: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows statistics of the server or of a store.",
    discussion: """
      Prints a table on a terminal, otherwise one line of JSON with a member for each statistic. With --format csv, \
      each statistic is a column. Names end in their units. The server's statistics include uptime_milliseconds, \
      connections, connections_accepted_total, requests_total, stores, memory_bytes, output_bytes, \
      received_bytes_total, sent_bytes_total, request_p50_nanoseconds, request_p99_nanoseconds and \
      request_p999_nanoseconds (the last three for the last ten seconds). A store's statistics include entries, \
      revision, written_total, key_bytes, value_bytes, memory_bytes, expiring, snapshots and watches; durable stores \
      have more, about their files.

      With --watch, repeats the output until interrupted: on a terminal, a page with rates, latencies and all stores, \
      or with the statistics and rates of the given STORE; otherwise, a line of JSON each time. CSV has its header \
      only once. Writes are counted by key: a request that writes ten keys counts as ten.

      Example: larder stats items
      Example: larder stats items --watch
      """)

  @OptionGroup private var connection: ConnectionOptions

  @Argument(
    help: "A store's name. (default: show the server's statistics)", completion: .custom(StoreNameCompletion.names))
  private var store: String?

  @OptionGroup private var watching: WatchingOptions
  @OptionGroup var outputOptions: OutputOptions

  func run() async throws {
    let client = try connection.client()
    if watching.watch { return try await watch(client, of: connection.servers()) }
    let statistics = try await statistics(from: client)
    var records = RecordOutput(Self.columns(of: statistics))
    try Self.print(statistics, &records)
  }

  private func statistics(from client: LarderClient) async throws(LarderError) -> [String: UInt64] {
    if let store { return try await client.store(store).stats() }
    return try await client.stats()
  }

  private static func print(
    _ statistics: [String: UInt64], _ records: inout RecordOutput<[String: UInt64]>
  ) throws {
    guard Output.showsTables else { return try records.print([statistics]) }
    var table = Table(header: ["STATISTIC", "VALUE", ""], omissible: [""], uncut: ["STATISTIC", "VALUE"])
    for (name, value) in statistics.sorted(by: { $0.key < $1.key }) {
      table.add(name, String(value), HumanReadable.statistic(name, value))
    }
    var output = Output()
    try output.write(table: table.text)
  }

  private static func columns(of statistics: [String: UInt64]) -> [RecordOutput<[String: UInt64]>.Column] {
    statistics.keys.sorted().map { name in .init(name) { $0[name].map { .number($0) } } }
  }

  // MARK: Watching

  /// Shows the statistics repeatedly until interrupted: in place on a terminal, otherwise one output after another.
  private func watch(_ client: LarderClient, of servers: ServerList) async throws {
    let pause = watching.pause
    try await runUntilInterrupted { [self] in
      guard Output.showsPages else { return try await watch(client, pause) }
      if let store {
        try await Self.watch(StorePage(store: store, address: "\(servers)"), client.store(store), pause)
      } else {
        try await Self.watch(StatsPage(address: "\(servers)"), client, pause)
      }
    }
  }

  private func watch(_ client: LarderClient, _ pause: Duration) async throws {
    var statistics = try await statistics(from: client)
    var records = RecordOutput(Self.columns(of: statistics))
    while true {
      try Self.print(statistics, &records)
      try await Task.sleep(for: pause)
      statistics = try await self.statistics(from: client)
      // Lines of JSON don't depend on each other, and the store can be another one by now.
      if Output.format == .json { records = RecordOutput(Self.columns(of: statistics)) }
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
      guard try await screen.wait(for: pause) else { return }
    }
  }

  private static func watch(_ page: consuming StorePage, _ store: RemoteStore, _ pause: Duration) async throws {
    // Fails now if there is no such store.
    page.add(try await store.stats(), time: seconds)
    let screen = AlternateScreen()
    while true {
      screen.show(page.lines(height: screen.size.height))
      guard try await screen.wait(for: pause) else { return }
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
