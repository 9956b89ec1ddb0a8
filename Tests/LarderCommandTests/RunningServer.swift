import Foundation
import Testing

/// A real `larderd` with a store `items`. It stops when this object is released.
final class RunningServer {
  let address: String
  let process = Process()
  private let folder: TemporaryFolder

  /// - Parameters:
  ///   - data: The data directory; nil if there are only memory stores.
  ///   - stores: The values of `--store`.
  init(data: URL? = nil, stores: [String] = ["items=memory"]) throws {
    folder = try TemporaryFolder()
    address = "unix:\(folder.path)/larder.sock"
    process.executableURL = Command.products.appending(path: "larderd")
    process.arguments = ["--listen", address] + stores.flatMap { ["--store", $0] }
    if let data { process.arguments?.append(contentsOf: ["--data", data.path]) }
    process.standardError = FileHandle.nullDevice
    try process.run()
    while try larder("ping").status != 0 {
      try #require(process.isRunning, "larderd has ended")
      usleep(5_000)
    }
  }

  deinit { stop() }

  /// Stops the server with SIGTERM, and waits until it has exited.
  func stop() {
    process.terminate()
    process.waitUntilExit()
  }

  func larder(_ arguments: String..., input: String = "") throws -> Command {
    try larder(arguments, input: Array(input.utf8))
  }

  func larder(_ arguments: [String], input: [UInt8]) throws -> Command {
    try Command.larder(arguments, input: input, environment: environment)
  }

  func shell(_ script: String) throws -> Command {
    try Command.shell(script, environment: environment)
  }

  private var environment: [String: String] { ["LARDER_SERVER": address, "TMPDIR": folder.path] }
}
