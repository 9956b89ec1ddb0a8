import Foundation
import Glibc
import Platform

/// A larderd with one worker and three stores: one in memory, one on the disk, and one on a file system of its own, in
/// an image, which can be frozen.
///
/// The file system is mounted in a mount namespace of the server's process, and disappears with it.
final class StallingServer {
  static let healthyStores = ["memory", "log"]
  private static let stallingStore = "stalling"
  private static let files = "$DATA/stores/\(stallingStore)/files"
  private static let image = "$DATA.image"
  private static let imageSize = "512M"

  let contender: Contender
  private let server: RunningServer
  private let data: String

  /// - Throws: `BenchError` if this process is not permitted to mount and freeze file systems.
  init(sockets: TemporaryFolder, disk: TemporaryFolder) throws {
    guard geteuid() == 0 else { throw BenchError("only root may freeze a file system") }
    for tool in ["unshare", "mount", "mkfs.ext4", "fsfreeze"] where Programs.find(tool) == nil {
      throw BenchError("\(tool) is not installed")
    }
    let data = disk.makePath("stall")
    let plain = try Contender.larder(stores: [
      (Self.healthyStores[0], "memory"), (Self.healthyStores[1], "log"), (Self.stallingStore, "log"),
    ])
    // The first start creates the files that the image begins with.
    try RunningServer(plain, in: sockets, data: data).stop()
    let (files, image) = (Self.expand(Self.files, data), Self.expand(Self.image, data))
    guard Programs.output("mkfs.ext4", ["-q", "-d", files, image, Self.imageSize]) != nil else {
      throw BenchError("mkfs.ext4 failed")
    }
    let script = #"mount -o loop "$0" "$1" && rm -r "$1/lost+found" && shift && exec "$@""#
    guard let mounting = plain.started(by: "unshare", ["--mount", "sh", "-c", script, Self.image, Self.files]) else {
      throw BenchError("unshare is not installed")
    }
    contender = mounting
    server = try RunningServer(mounting, in: sockets, data: data)
    self.data = data
  }

  private static func expand(_ path: String, _ data: String) -> String {
    path.replacingOccurrences(of: "$DATA", with: data)
  }

  var address: Address { server.address }

  func stop() { server.stop() }

  /// Makes the disk of the third store stall while clients put values into this store.
  func stall() throws -> Stall {
    try Stall(
      freezing: "/proc/\(server.probe.process)/root\(Self.expand(Self.files, data))", address, store: Self.stallingStore
    )
  }
}

/// A frozen file system, and puts that wait for it.
final class Stall {
  private let puts: BackgroundWork
  private let freezer = Process()
  private let thaw = Pipe()
  /// The number of puts that had begun when the file system was frozen.
  private let begun: Int
  private static let clients = 4

  /// - Parameter folder: A folder of the file system.
  fileprivate init(freezing folder: String, _ address: Address, store: String) throws {
    puts = BackgroundWork(threads: Self.clients) { next in
      var connection = try ValueConnection<LarderTarget>(to: address, store: store, timeout: .seconds(60))
      let request = try connection.putRequest(BenchValue.bytes(size: LargePlan.smallSize), at: 1)
      while next() { _ = try connection.exchange(request) }
    }
    // The file system is thawed when the pipe is closed, which also happens when this process is killed.
    let script = #"trap "" INT TERM; fsfreeze -f "$0" && echo frozen && read -r _; fsfreeze -u "$0""#
    freezer.executableURL = URL(fileURLWithPath: "/bin/sh")
    freezer.arguments = ["-c", script, folder]
    freezer.standardInput = thaw
    let output = Pipe()
    freezer.standardOutput = output
    freezer.standardError = FileHandle.nullDevice
    do { try freezer.run() } catch {
      _ = try? puts.stop()
      throw error
    }
    let isFrozen = !output.fileHandleForReading.availableData.isEmpty
    usleep(100_000)
    begun = puts.begun
    guard isFrozen else {
      try end()
      throw BenchError("fsfreeze failed")
    }
  }

  /// Ends the stall, and waits until all puts are done.
  /// - Throws: `BenchError` if the disk answered during the stall.
  func end() throws {
    let hasStalled = puts.begun == begun
    try thaw.fileHandleForWriting.close()
    freezer.waitUntilExit()
    try puts.stop()
    guard hasStalled else { throw BenchError("the frozen file system was written") }
  }
}
