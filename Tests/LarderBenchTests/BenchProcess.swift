import Foundation

@testable import larder_bench

/// `larder-bench` of this build, run as a separate process with pipes for its output.
enum BenchProcess {
  static let path = "\(Programs.folder)/larder-bench"

  static func run(
    _ arguments: [String], program: String = path
  ) throws -> (status: Int32, output: String, errors: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    let errorText = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (
      process.terminationStatus, String(decoding: text, as: UTF8.self), String(decoding: errorText, as: UTF8.self)
    )
  }
}
