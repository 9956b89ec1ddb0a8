import Platform
import TLS

/// What a client's connections need: the contents of its files as they were when the latest connection was made.
///
/// Used by any thread.
final class ClientCredentials: Sendable {
  private let tls: ClientTLS
  private let host: String
  private let current: Lock<Current>

  private struct Current {
    var files: Files
    var context: TLSContext
  }

  /// The reason why there can be no connection.
  struct Problem: Error, CustomStringConvertible {
    let description: String
  }

  /// - Throws: An error if the address is not one with TLS, or a file can't be used.
  init(_ tls: ClientTLS, for text: String) throws(Problem) {
    let address: Address
    do { address = try Address(text) } catch { throw Problem(description: error.description) }
    guard case .tls(let host, _) = address else {
      throw Problem(description: "\(address) is not encrypted: write tls:HOST:PORT, or leave out tls:")
    }
    self.tls = tls
    self.host = tls.serverName ?? host
    let files = try Files(tls)
    current = Lock(Current(files: files, context: try files.makeContext(tls)))
  }

  /// Makes the layer of a new connection.
  /// - Returns: nil without memory.
  func makeLayer() -> TLSLayer? {
    let context = current.withLock { current in
      if let files = try? Files(tls), files != current.files, let context = try? files.makeContext(tls) {
        current = Current(files: files, context: context)
      }
      return current.context
    }
    return TLSLayer(connectingTo: host, context)
  }

  /// The contents of the files.
  private struct Files: Equatable {
    var authorities: [UInt8]?
    var certificate: [UInt8]?
    var key: [UInt8]?

    private static let maxByteCount = 16 << 20

    init(_ tls: ClientTLS) throws(Problem) {
      if case .authorities(let path) = tls.trust { authorities = try Self.read(path) }
      if let own = tls.certificate { (certificate, key) = (try Self.read(own.file), try Self.read(own.keyFile)) }
    }

    private static func read(_ path: String) throws(Problem) -> [UInt8] {
      do { return try readFile(path, maxByteCount: maxByteCount) } catch {
        throw Problem(description: "\(path): \(error.reason)")
      }
    }

    func makeContext(_ tls: ClientTLS) throws(Problem) -> TLSContext {
      do {
        var identity: TLSIdentity?
        if let certificate, let key, let own = tls.certificate {
          identity = try TLSIdentity(chain: certificate, key: key, names: (own.file, own.keyFile))
        }
        return try TLSContext.client(
          trusting: try trust(tls.trust), identity: identity, applicationProtocol: ClientCredentials.protocolName)
      } catch let error as TLSError { throw Problem(description: error.description) } catch {
        throw Problem(description: "\(error)")
      }
    }

    private func trust(_ trust: ClientTLS.Trust) throws -> TLSTrust {
      switch trust {
      case .system: TLSTrust(.system)
      case .authorities(let path): TLSTrust(.authorities(try Certificate.readAll(authorities ?? [], from: path)))
      case .pinnedKeys(let texts): TLSTrust(.keys(try texts.map(ClientCredentials.digest)))
      }
    }
  }

  /// Larder's own protocol: `Protocol/wire.md` §2.
  private static let protocolName = "larder/1"

  /// Parses the SHA-256 digest of a key.
  private static func digest(_ text: String) throws(Problem) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    guard digits.count == 64, text.count == 64 else {
      throw Problem(description: "'\(text)' is not a SHA-256 digest, which has 64 hexadecimal digits")
    }
    return stride(from: 0, to: 64, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
