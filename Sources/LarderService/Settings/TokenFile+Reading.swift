import LarderServer
import Platform
import Tokens

/// The reason why the file of tokens can't be used.
package struct TokenFileError: Error, Equatable, Sendable, CustomStringConvertible {
  package let description: String
}

extension TokenTable {
  private static let maxByteCount = 64 << 20

  /// Reads the tokens of a file.
  /// - Parameter path: The file; nil for no tokens.
  init(file path: String?) throws(TokenFileError) {
    guard let path else {
      self.init()
      return
    }
    let bytes: [UInt8]
    do { bytes = try readFile(path, maxByteCount: Self.maxByteCount, trusting: .writableByOwner) } catch {
      throw TokenFileError(description: "\(path): \(error.reason)")
    }
    do { self.init(try TokenFile(bytes, from: path).records) } catch {
      throw TokenFileError(description: error.description)
    }
  }
}
