import Crypto
import DataSources
import Foundation

#if !AllProducts && !SecretDataSource
  #error("Enable the trait SecretDataSource: .package(…, traits: [\"SecretDataSource\"])")
#endif

/// Seals values and opens them again, with AES-GCM, 256-bit keys and a new random nonce per value.
///
/// A sealed value consists of the byte 1, the eight bytes of the key's fingerprint, the twelve bytes of the nonce, as
/// many bytes as the value has, and the sixteen bytes of the tag. The tag also covers the name for which the value is
/// sealed. Because nonces are random, a key is good for 2³² values.
struct Seal: Sendable {
  private static let version: UInt8 = 1
  private static let fingerprintByteCount = 8
  private static let headerByteCount = 1 + fingerprintByteCount

  private let key: SecretKey
  private let keysByFingerprint: [Data: SecretKey]

  /// - Parameter older: Further keys to open values with.
  init(_ key: SecretKey, older: [SecretKey]) {
    self.key = key
    keysByFingerprint = Dictionary((older + [key]).map { ($0.fingerprint, $0) }, uniquingKeysWith: { $1 })
  }

  func seal(_ value: Data, for name: String) throws -> Data {
    let header = [Self.version] + key.fingerprint
    do {
      let box = try AES.GCM.seal(
        value, using: key.bytes, authenticating: Self.authenticatedData(header, name))
      guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
      return Data(header) + combined
    } catch {
      throw DataSourceError(.failed, "the value could not be sealed")
    }
  }

  /// - Throws: `DataSourceError.wrongKey` if the value was sealed with a key that is missing here, `.dataSerialization`
  ///   if it isn't exactly what one of the keys has sealed for this name.
  func open(_ sealed: Data, for name: String) throws -> Data {
    let header = sealed.prefix(Self.headerByteCount)
    guard header.count == Self.headerByteCount, header.first == Self.version else {
      throw DataSourceError(.dataSerialization, "there is no sealed value under \(name.debugDescription)")
    }
    let box = try? AES.GCM.SealedBox(combined: Data(sealed.dropFirst(Self.headerByteCount)))
    let fingerprint = Data(header.dropFirst())
    if let key = keysByFingerprint[fingerprint] {
      if let box, let value = Self.open(box, key, name) { return value }
    } else if let box, !keysByFingerprint.values.contains(where: { Self.open(box, $0, name) != nil }) {
      throw DataSourceError(
        .wrongKey,
        """
        the value under \(name.debugDescription) was sealed with the key \(fingerprint.hexadecimal), which this source \
        doesn't have: pass it as key or among the older keys
        """)
    }
    throw DataSourceError(
      .dataSerialization, "the value under \(name.debugDescription) is damaged, or was moved here from another entry")
  }

  /// Returns the value that a key has sealed for a name; nil if it has not.
  private static func open(_ box: AES.GCM.SealedBox, _ key: SecretKey, _ name: String) -> Data? {
    try? AES.GCM.open(box, using: key.bytes, authenticating: authenticatedData([version] + key.fingerprint, name))
  }

  private static func authenticatedData(_ header: [UInt8], _ name: String) -> Data {
    Data("larder secret".utf8) + header + Data(name.utf8)
  }
}
