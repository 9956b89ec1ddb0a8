import Foundation
import Larder
import Platform
import Synchronization
import Testing

/// What callers see when a real server process ends and comes back.
@Suite(.serialized) struct RestartTests {
  @Test(arguments: [SIGKILL, SIGTERM])
  func `no call hangs when the server ends under it, and each gets an honest outcome`(_ signal: Int32) async throws {
    let folder = try TemporaryFolder()
    let address = "unix:\(folder.path)/larder.sock"
    var server = try ServerProcess(address: address, store: "items")
    let client = try LarderClient(address)
    let items = client.store("items")
    try await items.put("first", [1])
    let tally = Tally()

    try await withThrowingTaskGroup { group in
      for task in 0..<32 {
        group.addTask {
          var number = 0
          while !tally.isOver {
            number += 1
            do throws(LarderError) {
              if number % 2 == 0 {
                _ = try await items.get("k\(task)")
              } else {
                try await items.put("k\(task)", [UInt8(task)])
              }
              tally.add("done")
            } catch {
              tally.add("\(error.kind)")
              // A write that was sent and not answered is never called safe; a killed server can't have refused one.
              if error.outcome == .unknown, number % 2 == 1 { #expect(!error.isSafeToRetry) }
            }
          }
        }
      }
      for _ in 0..<3 {
        // A server that does not serve yet ends by the signal itself.
        try await client.ping()
        try await Task.sleep(for: .milliseconds(150))
        let status = server.end(with: signal)
        if signal == SIGTERM { #expect(status == 0) }
        server = try ServerProcess(address: address, store: "items")
      }
      try await Task.sleep(for: .milliseconds(300))
      tally.end()
      try await group.waitForAll()
    }
    let counts = tally.counts
    #expect(counts["done", default: 0] > 100)
    let allowed: Set = ["done", "disconnected", "connectFailed", "shuttingDown", "storeUnknown"]
    #expect(Set(counts.keys).isSubset(of: allowed), "\(counts)")
    // An orderly stop says what was not executed, so that nothing is left unknown.
    if signal == SIGTERM { #expect(counts["disconnected"] == nil, "\(counts)") }
    try await items.put("last", [1])
    await client.shutdown()
    _ = server.end(with: SIGTERM)
  }

  private final class Tally: Sendable {
    private let table = Lock<[String: Int]>([:])
    func add(_ name: String) { table.withLock { $0[name, default: 0] += 1 } }
    private let over = Atomic<Bool>(false)
    var isOver: Bool { over.load(ordering: .relaxed) }
    func end() { over.store(true, ordering: .relaxed) }
    var counts: [String: Int] { table.withLock { $0 } }
  }
}
