import Foundation
import Glibc
import Platform
import Testing
import Wire

extension ServerTests {
  /// The real `larderd`, in a process that may only have few descriptors.
  struct DescriptorLimitTests {
    @Test func `out of descriptors it does not spin, serves who is connected, and recovers`() throws {
      let daemon = try Daemon(descriptorLimit: 40)
      defer { daemon.stop() }
      let first = try TestClient(daemon.address)
      try first.greet()
      #expect(try first.call(Request.open("test", id: 2)).isDone)
      // The kernel completes these connections; the server has no descriptor for all of them.
      var waiting: [TestClient] = try (0..<80).map { _ in try TestClient(daemon.address) }
      usleep(300_000)
      let before = try daemon.cpuSeconds()
      let slowest = try seconds { () throws in
        for index in 0..<50 {
          #expect(try first.call(Request.put("key\(index)", [1], id: 3)).isDone)
          usleep(20_000)
        }
      }
      let spent = try daemon.cpuSeconds() - before
      #expect(spent < 0.1, "\(spent) s of CPU time in a second")
      #expect(slowest < 3)
      waiting.removeAll()
      let late = try TestClient(daemon.address)
      try late.greet()
      #expect(try late.pings())
      #expect(try first.figures()["connections"]! <= 4)
    }

    @Test(arguments: ["log", "directory"])
    func `out of descriptors a store on the disk refuses what has no room, and recovers`(
      engine: String
    ) throws {
      let daemon = try Daemon(descriptorLimit: 40, engine: engine)
      defer { daemon.stop() }
      let first = try TestClient(daemon.address)
      try first.greet()
      #expect(try first.call(Request.open("test", id: 2)).isDone)
      var waiting: [TestClient] = try (0..<80).map { _ in try TestClient(daemon.address) }
      usleep(300_000)
      let value = [UInt8](repeating: 1, count: 30_000)
      var isRefused = false
      for index in 0..<400 where !isRefused {
        let reply = try first.call(Request.put("key\(index)", value, id: 3))
        isRefused = reply.isError(.storeFull, id: 3)
        #expect(reply.isDone || isRefused, "\(reply)")
      }
      #expect(isRefused)
      waiting.removeAll()
      #expect(try eventually { try first.call(Request.put("after", value, id: 4)).isDone })
      #expect(try first.figures(store: 1)["read_only"] == 0)
    }

    @Test func `a signal stops it in order, with status 0 and no socket left`() throws {
      let daemon = try Daemon(descriptorLimit: 256)
      do {
        let client = try TestClient(daemon.address)
        try client.greet()
        #expect(try client.pings())
        daemon.interrupt()
        #expect(try client.receive().isNotice(.shuttingDown))
      }
      #expect(daemon.waitForStatus() == 0)
      #expect(!FileManager.default.fileExists(atPath: daemon.path))
    }
  }
}

/// A `larderd` in a child process, with a store `test`.
private final class Daemon {
  let path = NSTemporaryDirectory() + "larder-\(UInt32.random(in: 0 ... .max)).sock"
  private var data: String { path + ".data" }
  private let process = Process()

  var address: Address { .unix(path: path) }

  init(descriptorLimit: Int, engine: String = "memory") throws {
    // The test bundle and the executable are built side by side.
    let tests = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    let larderd = tests.deletingLastPathComponent().appending(path: "larderd").path
    try #require(FileManager.default.isExecutableFile(atPath: larderd), "\(larderd) was not built")
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = [
      "-c", "ulimit -n \(descriptorLimit); exec \"$0\" \"$@\"", larderd, "--listen", "unix:\(path)", "--data", data,
      "--store", "test=\(engine)",
    ]
    process.standardError = FileHandle.nullDevice
    try process.run()
    try #require(eventually { FileManager.default.fileExists(atPath: path) && (try? TestClient(address)) != nil })
  }

  func interrupt() { process.interrupt() }

  func stop() {
    process.terminate()
    _ = waitForStatus()
    try? FileManager.default.removeItem(atPath: path)
    try? FileManager.default.removeItem(atPath: data)
  }

  /// The exit status; nil when the process does not end.
  func waitForStatus() -> Int32? {
    guard eventually({ !process.isRunning }) else {
      kill(process.processIdentifier, SIGKILL)
      return nil
    }
    return process.terminationStatus
  }

  /// User and system time so far: proc_pid_stat(5), fields 14 and 15.
  func cpuSeconds() throws -> Double {
    let stat = try String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)
    let fields = stat[stat.lastIndex(of: ")")!...].split(separator: " ")
    return (Double(fields[12])! + Double(fields[13])!) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
