import Crypto
import DataSources
import Foundation

/// Seals values and opens them again: AES-GCM with 256 bits and a new random nonce for each.
///
/// A sealed value is: the byte 1, the eight bytes of the key's fingerprint, the nonce's twelve, as many as the value, and the sixteen of
/// the tag. The tag covers the name that the value is sealed for too. As nonces are random, a key is good for 2³² values.
struct Seal: Sendable {
  private static let version: UInt8 = 1
  private static let fingerprintByteCount = 8
  private static let headerByteCount = 1 + fingerprintByteCount

  private let key: SecretKey
  private let keys: [Data: SecretKey]

  /// - Parameter older: keys that values are still opened with.
  init(_ key: SecretKey, older: [SecretKey]) {
    self.key = key
    keys = Dictionary((older + [key]).map { ($0.fingerprint, $0) }, uniquingKeysWith: { $1 })
  }

  func seal(_ value: Data, for name: String) throws -> Data {
    let header = [Self.version] + key.fingerprint
    do {
      let box = try AES.GCM.seal(value, using: key.bytes, authenticating: Self.context(header, name))
      guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
      return Data(header) + combined
    } catch {
      throw DataSourceError(.failed, "a value could not be sealed")
    }
  }

  /// - Throws: `DataSourceError.dataSerialization` for what none of the keys has sealed for that name, as it is.
  func open(_ sealed: Data, for name: String) throws -> Data {
    let header = sealed.prefix(Self.headerByteCount)
    guard header.count == Self.headerByteCount, header.first == Self.version else {
      throw DataSourceError(.dataSerialization, "what is under \(name.debugDescription) is no sealed value")
    }
    let fingerprint = Data(header.dropFirst())
    guard let key = keys[fingerprint] else {
      throw DataSourceError(
        .dataSerialization,
        "what is under \(name.debugDescription) was sealed with another key (\(fingerprint.hexadecimal)), or damaged")
    }
    do {
      let box = try AES.GCM.SealedBox(combined: Data(sealed.dropFirst(Self.headerByteCount)))
      return try AES.GCM.open(box, using: key.bytes, authenticating: Self.context(Array(header), name))
    } catch {
      throw DataSourceError(
        .dataSerialization, "what is under \(name.debugDescription) was damaged, or sealed for another place")
    }
  }

  private static func context(_ header: [UInt8], _ name: String) -> Data {
    Data("larder secret".utf8) + header + Data(name.utf8)
  }
}
