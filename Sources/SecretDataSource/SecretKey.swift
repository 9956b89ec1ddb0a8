import Crypto
import DataSources
import Foundation

/// A key of 256 bits that secrets are sealed with. Its description tells which key it is, and nothing of the key.
public struct SecretKey: Sendable {
  static let byteCount = 32

  let bytes: SymmetricKey
  /// Eight bytes that are derived from the key and tell it from others. They stand in the open before what it has sealed.
  let fingerprint: Data

  /// A new key, of the system's random numbers. Keys that are to outlive the process are made by `make(file:)`.
  public init() {
    self.init(SymmetricKey(size: .bits256))
  }

  /// The key that these 32 bytes are.
  /// - Throws: `DataSourceError.illegalArgument` for another number of bytes.
  public init(_ bytes: some ContiguousBytes) throws {
    let key = SymmetricKey(data: bytes)
    guard key.bitCount == Self.byteCount * 8 else {
      throw DataSourceError(
        .illegalArgument, "a key has \(Self.byteCount) bytes, and these are \(key.bitCount / 8)")
    }
    self.init(key)
  }

  private init(_ key: SymmetricKey) {
    bytes = key
    fingerprint = unsafe HKDF<SHA256>.deriveKey(
      inputKeyMaterial: key, info: Data("larder secret: fingerprint".utf8), outputByteCount: 8
    ).withUnsafeBytes { unsafe Data($0) }
  }
}

extension SecretKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "secret key \(fingerprint.hexadecimal)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Data {
  var hexadecimal: String {
    map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
