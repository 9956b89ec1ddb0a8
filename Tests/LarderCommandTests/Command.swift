import Foundation

/// The result of a run of the real `larder`, or of a shell that finds it in its path.
struct Command {
  let status: Int32
  let output: [UInt8]
  let error: String

  var text: String { String(decoding: output, as: UTF8.self) }
  var lines: [String] { text.split(separator: "\n").map(String.init) }

  /// The folder of the tests' own executable, which also contains the products.
  static let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

  /// Runs `larder`. Its streams are files, so that none of them can block.
  static func larder(_ arguments: [String], input: [UInt8] = [], environment: [String: String] = [:]) throws -> Command
  {
    try run(products.appending(path: "larder"), arguments, input: input, environment: environment)
  }

  static func shell(_ script: String, environment: [String: String] = [:]) throws -> Command {
    try run(URL(fileURLWithPath: "/bin/bash"), ["-c", script], input: [], environment: environment)
  }

  private static func run(
    _ program: URL, _ arguments: [String], input: [UInt8], environment: [String: String]
  ) throws -> Command {
    let folder = try TemporaryFolder()
    let (inputFile, outputFile, errorFile) = (folder.file("in"), folder.file("out"), folder.file("err"))
    try Data(input).write(to: inputFile)
    try Data().write(to: outputFile)
    try Data().write(to: errorFile)
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    process.environment = ["PATH": "\(products.path):/usr/bin:/bin"].merging(environment) { $1 }
    process.standardInput = try FileHandle(forReadingFrom: inputFile)
    process.standardOutput = try FileHandle(forWritingTo: outputFile)
    process.standardError = try FileHandle(forWritingTo: errorFile)
    try process.run()
    process.waitUntilExit()
    return Command(
      status: process.terminationStatus, output: [UInt8](try Data(contentsOf: outputFile)),
      error: String(decoding: try Data(contentsOf: errorFile), as: UTF8.self))
  }
}

/// A folder that is removed when this object is released.
final class TemporaryFolder {
  let path = "/tmp/larder-test-\(UInt64.random(in: 0 ... .max))"

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> URL { URL(fileURLWithPath: path).appending(path: name) }
}
