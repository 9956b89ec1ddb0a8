import Foundation

/// A real `larderd` with a store `items`, which ends with its owner.
final class RunningServer {
  let address: String
  private let folder: TemporaryFolder
  private let process = Process()

  init() throws {
    folder = try TemporaryFolder()
    address = "unix:\(folder.path)/larder.sock"
    process.executableURL = Command.products.appending(path: "larderd")
    process.arguments = ["--listen", address, "--store", "items=memory"]
    process.standardError = FileHandle.nullDevice
    try process.run()
    while try larder("ping").status != 0 { usleep(5_000) }
  }

  deinit {
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

  private var environment: [String: String] { ["LARDER_SERVER": address] }
}
