import Foundation

/// The files of this project that tests read or run.
package enum ProjectFiles {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Returns a file of the source tree.
  ///
  /// - Parameter path: The path from the project's root.
  package static func url(_ path: String) -> URL { root.appending(path: path) }

  /// Reads golden vectors.
  ///
  /// - Parameter path: The path from `Protocol/vectors`.
  package static func vectors<Vector: Decodable>(_ path: String, as type: Vector.Type = Vector.self) throws -> [Vector]
  {
    try JSONDecoder().decode([Vector].self, from: Data(contentsOf: vectorFile(path)))
  }

  /// Replaces golden vectors, which is necessary only after a change of their format.
  package static func writeVectors<Vector: Encodable>(_ vectors: [Vector], to path: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try (encoder.encode(vectors) + Data("\n".utf8)).write(to: vectorFile(path))
  }

  private static func vectorFile(_ path: String) -> URL { url("Protocol/vectors/\(path)") }

  /// Returns an executable of this build, which is next to the test bundle.
  package static func executable(_ name: String) throws -> URL {
    let tests = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    return tests.deletingLastPathComponent().appending(path: name)
  }
}

extension [UInt8] {
  /// The bytes of a hexadecimal text.
  ///
  /// - Precondition: The text has an even number of hexadecimal digits.
  package init(hex: String) {
    let digits = hex.utf8.map { UInt8(String(UnicodeScalar($0)), radix: 16)! }
    self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  package var hex: String {
    let digits = [UInt8]("0123456789abcdef".utf8)
    return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}
