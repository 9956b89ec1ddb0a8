import Foundation
import Larder
import Platform
import Synchronization
import TestSupport
import Testing

/// What callers see when a server process ends and comes back.
@Suite(.serialized) struct RestartTests {
  @Test(arguments: [SIGKILL, SIGTERM])
  func `when the server ends, no call hangs and each outcome is correct`(_ signal: Int32) async throws {
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
              // A write that was sent and not answered is never safe to repeat.
              if error.outcome == .unknown, number % 2 == 1 { #expect(!error.isSafeToRetry) }
            }
          }
        }
      }
      for _ in 0..<3 {
        // Before it serves, the signal itself would end the server.
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
    // A server that stops in order says which requests it did not execute, so that no outcome is unknown.
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

/// What callers see when a server restarts whose listening socket another process keeps, as systemd does.
@Suite(.serialized) struct ActivationTests {
  @Test func `no call fails while a server with a kept socket restarts 20 times`() async throws {
    let folder = try TemporaryFolder()
    let kept = try ListeningSocket.open(.unix(path: "\(folder.path)/s"))
    var server = try ActivatedServer(kept, data: "\(folder.path)/data")
    let client = try LarderClient("\(kept.address)")
    let items = client.store("items").with(timeout: .seconds(20))
    let tally = Tally()

    let counts = try await withThrowingTaskGroup { group in
      for task in 0..<8 {
        group.addTask { () async -> Int in
          var calls = 0
          // Each task writes numbers to one key, and must read its last one, also after a restart.
          while !tally.isOver || calls < 250 {
            do throws(LarderError) {
              let value = Array("\(calls)".utf8)
              try await items.put("k\(task)", value)
              let found = try await items.get("k\(task)")?.bytes
              #expect(found == value)
            } catch {
              tally.add(error)
            }
            calls += 2
          }
          return calls
        }
      }
      for restart in 0..<20 {
        try await Task.sleep(for: .milliseconds(20 + restart * 7 % 40))
        // Before it serves, the signal itself ends the server.
        #expect([0, SIGTERM].contains(server.stop()))
        // Some of the outages are longer.
        if restart % 5 == 0 { try await Task.sleep(for: .milliseconds(200)) }
        server = try ActivatedServer(kept, data: "\(folder.path)/data")
      }
      tally.end()
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let failed = tally.failures
    #expect(failed.isEmpty, "\(failed.count) failed: \(failed.prefix(3))")
    #expect(counts.reduce(0, +) >= 1_000)
    print("\(counts.reduce(0, +)) calls over 20 restarts, \(failed.count) failed")
    await client.shutdown()
  }

  private final class Tally: Sendable {
    private let over = Atomic<Bool>(false)
    private let errors = Lock<[LarderError]>([])

    var isOver: Bool { over.load(ordering: .relaxed) }
    var failures: [LarderError] { errors.withLock { $0 } }
    func add(_ error: LarderError) { errors.withLock { $0.append(error) } }
    func end() { over.store(true, ordering: .relaxed) }
  }
}

/// A `larderd` of this build that serves a socket that it inherits.
private final class ActivatedServer {
  private let process = Process()

  init(_ socket: borrowing ListeningSocket, data: String) throws {
    let larderd = try ProjectFiles.executable("larderd").path
    process.executableURL = URL(fileURLWithPath: "/bin/bash")
    // The script moves the socket from standard input to the descriptor that the service manager would use.
    let script = #"exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=clients exec "$0" "$@""#
    process.arguments = ["-c", script, larderd, "--data", data, "--store", "items=log"]
    process.standardInput = FileHandle(fileDescriptor: socket.descriptor.number, closeOnDealloc: false)
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  deinit { if process.isRunning { process.terminate() } }

  /// Stops the server.
  /// - Returns: The exit status, or the number of the signal that ended the process.
  func stop() -> Int32 {
    process.terminate()
    process.waitUntilExit()
    return process.terminationStatus
  }
}
