import Foundation

/// Functions that find and run other programs.
enum Programs {
  /// The folder of this program, which also contains `larderd`.
  static var folder: String {
    let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "/"
    return URL(fileURLWithPath: program).deletingLastPathComponent().path
  }

  /// Returns the path of a program in this program's folder or in PATH, or nil if it is not installed.
  static func find(_ name: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    return ([folder] + path.split(separator: ":").map(String.init)).map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Returns a program's trimmed output, or nil if it is not installed or fails.
  static func output(_ name: String, _ arguments: [String]) -> String? {
    guard let path = find(name) else { return nil }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return nil }
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { return nil }
    return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
