import Testing

@testable import larder

@Suite struct StatsPageTests {
  private func sample(_ time: Double, requests: UInt64, uptime: UInt64, revision: UInt64 = 0, stores: Int = 1)
    -> StatsPage.Sample
  {
    StatsPage.Sample(
      time: time,
      server: [
        "uptime_milliseconds": uptime, "requests_total": requests, "connections": 3, "memory_bytes": 5 << 20,
        "received_bytes_total": requests * 1_024, "sent_bytes_total": 0, "request_p50_nanoseconds": 16_384,
        "request_p99_nanoseconds": 2_097_152, "request_p999_nanoseconds": .max,
      ],
      stores: (0..<stores).map { number in
        .init(
          name: "s\(number)", engine: "log",
          statistics: ["entries": 7, "revision": revision, "written_total": 10 * revision, "log_bytes": 2_048])
      })
  }

  @Test func `rates are the changes between two samples`() {
    var page = StatsPage(address: "unix:/a")
    page.add(sample(10, requests: 1_000, uptime: 60_000, revision: 5))
    #expect(page.lines(height: 40).contains { $0.hasPrefix("requests     –") })
    page.add(sample(12, requests: 5_000, uptime: 62_000, revision: 25))
    let lines = page.lines(height: 40)
    #expect(lines[0] == "larderd at unix:/a, up 1m 02s")
    #expect(lines[1].hasPrefix("requests     2,000/s") && lines[1].hasSuffix("█"))
    #expect(lines[2] == "latency      p50 16 µs   p99 2.0 ms   p99.9 longer")
    #expect(lines[3] == "traffic      received 1.9 MiB/s   sent 0 B/s   waiting 0 B")
    #expect(lines[4] == "connections  3   store memory 5.0 MiB")
    #expect(lines[7].split(separator: " ") == ["s0", "log", "7", "100", "0", "–", "2.0", "KiB", "–"])
  }

  @Test func `a store with a limit shows the limit and the evictions per second`() {
    var page = StatsPage(address: "unix:/a")
    for (time, evicted) in [(10, 100), (12, 700)] as [(Double, UInt64)] {
      let statistics: [String: UInt64] = ["entries": 7, "limit_bytes": 1 << 20, "evicted_total": evicted]
      let store = StatsPage.StoreSample(name: "s", engine: "memory", statistics: statistics)
      page.add(.init(time: time, server: [:], stores: [store]))
    }
    let row = page.lines(height: 40).first { $0.hasPrefix("s ") }
    #expect(row?.split(separator: " ") == ["s", "memory", "7", "–", "0", "–", "1.0", "MiB", "300"])
  }

  @Test func `the page of a store has its statistics, and counts written entries`() {
    var page = StorePage(store: "orders", address: "unix:/a")
    for (time, count) in [(10, 100), (12, 300)] as [(Double, UInt64)] {
      page.add(["entries": 7, "revision": count / 10, "written_total": count, "log_bytes": 2_048], time: time)
    }
    let rows = page.lines(height: 24).map { $0.split(separator: " ").joined(separator: " ") }
    #expect(rows[..<3] == ["orders of larderd at unix:/a", "writes 100/s █", ""])
    #expect(
      rows[4...7] == ["entries 7", "log_bytes 2048 2.0 KiB", "revision 30 10", "written_total 300 100"])
    page.add(failure: "can't connect")
    #expect(page.lines(height: 24)[1] == "(!) can't connect")
    page.add(["entries": 7, "written_total": 2], time: 14)
    #expect(page.lines(height: 24)[1].hasPrefix("writes   –"))
    #expect(page.lines(height: 5).count == 5 && page.lines(height: 5).last == "Press q or Ctrl-C to quit")
  }

  @Test(arguments: [40, 80]) func `the page fits its width, with whole numbers and the latest rate`(width: Int) {
    var page = StatsPage(address: "unix:/a")
    let statistics: [String: UInt64] = [
      "entries": 1_234_567, "memory_bytes": 1_000 << 20, "limit_bytes": 1_001 << 20, "evicted_total": 0,
      "log_bytes": 1_002 << 20, "log_dead_bytes": 1_003 << 20,
    ]
    for time in 1...100 {
      var server = sample(0, requests: UInt64(time), uptime: UInt64(time)).server
      server["requests_total"] = time == 100 ? 1_000_000 : 0
      let store = StatsPage.StoreSample(name: "customer-sessions-of-the-shop", engine: "memory", statistics: statistics)
      page.add(.init(time: Double(time), server: server, stores: [store]))
    }
    let lines = page.lines(width: width, height: 24)
    #expect(
      lines.dropFirst().allSatisfy { EscapedText.width($0) <= width && (!$0.contains("…") || $0.hasPrefix("cust")) })
    #expect(lines[1].hasSuffix("█"))
    #expect(lines.contains { $0.contains("p99.9 longer") } && lines.contains { $0.contains("waiting 0 B") })
    #expect(lines.contains { $0.hasPrefix("cust") && $0.contains(" 1234567 ") })
    #expect(lines.contains { $0.contains(" 1001.0 MiB ") } == (width == 80))
  }

  @Test func `the page of a store fits 40 columns with whole numbers and the latest rate`() {
    var page = StorePage(store: "orders", address: "unix:/a")
    for time in 1...100 {
      let count: UInt64 = time == 100 ? 1_000 : 0
      page.add(["log_compaction_bytes_total": count, "written_total": count, "incarnation": .max], time: Double(time))
    }
    let lines = page.lines(width: 40, height: 24)
    #expect(lines.allSatisfy { EscapedText.width($0) <= 40 } && lines[1].hasSuffix("█"))
    #expect(lines.contains { $0.hasPrefix("incarnation ") && $0.hasSuffix(" \(UInt64.max)") })
    #expect(lines.contains { $0.hasPrefix("log_compaction_by…") })
  }

  @Test func `rates on the stats page start over when the server restarts`() {
    var page = StatsPage(address: "unix:/a")
    page.add(sample(10, requests: 1_000, uptime: 60_000))
    page.add(sample(11, requests: 10, uptime: 500))
    #expect(page.lines(height: 40)[1].hasPrefix("requests     –"))
    page.add(sample(12, requests: 20, uptime: 1_500))
    #expect(page.lines(height: 40)[1].hasPrefix("requests     10/s"))
  }

  @Test func `a failure appears above the last statistics, and stores that do not fit are counted`() {
    var page = StatsPage(address: "unix:/a")
    page.add(failure: "can't connect")
    #expect(page.lines(height: 24) == ["larderd at unix:/a", "can't connect"])
    page.add(sample(10, requests: 1, uptime: 1, stores: 100))
    page.add(failure: "can't connect")
    let lines = page.lines(height: 24)
    #expect(lines[1] == "(!) can't connect")
    #expect(lines.count <= 24 && lines.contains { $0.hasPrefix("… and ") && $0.hasSuffix(" more") })
  }

  @Test func `impossible statistics are shown, too`() {
    var page = StatsPage(address: "unix:/a")
    page.add(sample(10, requests: 0, uptime: 1))
    var statistics = sample(10.5, requests: 0, uptime: 2).server
    for name in statistics.keys { statistics[name] = .max }
    page.add(
      .init(time: 10.5, server: statistics, stores: [.init(name: "s", engine: "log", statistics: statistics)]))
    #expect(page.lines(height: 24).contains { $0.hasPrefix("requests     1,000,000,000,000,000/s") })
  }

  @Test func `a sparkline ranges from zero to the maximum`() {
    #expect(StatsPage.sparkline([0, 1, 3.5, 7]) == "▁▂▅█")
    #expect(StatsPage.sparkline([0, 0]) == "▁▁")
    #expect(StatsPage.sparkline([]) == "")
  }
}
