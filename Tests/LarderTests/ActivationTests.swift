import Foundation
import Larder
import Platform
import Synchronization
import Testing

/// What callers see of restarts while somebody else keeps the listening socket, as systemd does.
@Suite(.serialized) struct ActivationTests {
  @Test func `no call fails while a server whose socket is kept restarts 20 times`() async throws {
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
          // Each task writes numbers to one key, and must read what it wrote last, across restarts.
          while !tally.isOver.load(ordering: .relaxed) || calls < 250 {
            do throws(LarderError) {
              let value = Array("\(calls)".utf8)
              try await items.put("k\(task)", value)
              let found = try await items.get("k\(task)")?.bytes
              #expect(found == value)
            } catch {
              tally.failures.withLock { $0.append(error) }
            }
            calls += 2
          }
          return calls
        }
      }
      for restart in 0..<20 {
        try await Task.sleep(for: .milliseconds(20 + restart * 7 % 40))
        // One that has not begun to serve is ended by the signal itself.
        #expect([0, SIGTERM].contains(server.stop()))
        // Now and then the server stays away for a while.
        if restart % 5 == 0 { try await Task.sleep(for: .milliseconds(200)) }
        server = try ActivatedServer(kept, data: "\(folder.path)/data")
      }
      tally.isOver.store(true, ordering: .relaxed)
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let failed = tally.failures.withLock { $0 }
    #expect(failed.isEmpty, "\(failed.count) failed: \(failed.prefix(3))")
    #expect(counts.reduce(0, +) >= 1_000)
    print("\(counts.reduce(0, +)) calls over 20 restarts, \(failed.count) failed")
    await client.shutdown()
  }

  private final class Tally: Sendable {
    let isOver = Atomic<Bool>(false)
    let failures = Lock<[LarderError]>([])
  }
}

/// A `larderd` of this build that serves a socket which was passed to it.
private final class ActivatedServer {
  private let process = Process()

  init(_ socket: borrowing ListeningSocket, data: String) throws {
    let runner = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let larderd = URL(fileURLWithPath: runner).deletingLastPathComponent().appendingPathComponent("larderd").path
    process.executableURL = URL(fileURLWithPath: "/bin/bash")
    // The socket comes as standard input, and goes to where the service manager would have put it.
    let script = #"exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=clients exec "$0" "$@""#
    process.arguments = ["-c", script, larderd, "--data", data, "--store", "items=log"]
    process.standardInput = FileHandle(fileDescriptor: socket.descriptor.number, closeOnDealloc: false)
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  deinit { if process.isRunning { process.terminate() } }

  /// - Returns: the exit status.
  func stop() -> Int32 {
    process.terminate()
    process.waitUntilExit()
    return process.terminationStatus
  }
}
