import Platform
import Storage
import Testing

@testable import LarderService

struct StartupProgressReporterTests {
  private func progress(_ number: Int, percent: Int) throws -> OpeningProgress {
    OpeningProgress(store: try StoreName("orders"), number: number, storeCount: 2, percent: percent)
  }

  @Test func `progress is reported a few times per second while a store is read`() throws {
    let reported = Lock<[String]>([])
    let reporter = StartupProgressReporter { status, _ in reported.withLock { $0.append(status) } }
    for now: UInt64 in [1_000, 1_249, 1_250, 1_300, 2_000] { reporter.report(try progress(1, percent: 7), now: now) }
    reporter.report(try progress(2, percent: 0), now: 2_001)
    let first = "opening orders, store 1 of 2: 7% read"
    #expect(reported.withLock { $0 } == [first, first, first, "opening orders, store 2 of 2: 0% read"])
  }
}
