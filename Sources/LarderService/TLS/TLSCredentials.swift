import EntryFiles
import Glibc
import LarderServer
import Platform
import TLS

/// The certificates and keys of the server, as its files say. New connections use the latest.
///
/// Used by any thread.
final class TLSCredentials: Sendable {
  private let current: Lock<TLSConfiguration>

  /// - Throws: An error for a file that can't be used.
  init(_ settings: TLSSettings) throws(TLSFileError) {
    current = Lock(try TLSConfiguration(TLSFiles(settings)))
  }

  /// Makes the layer of a new connection.
  /// - Parameter applicationName: The protocol of its listener.
  /// - Returns: nil without memory.
  func makeLayer(_ applicationName: String?) -> TLSLayer? {
    let contexts = current.withLock { $0.contexts }
    guard let context = applicationName.flatMap({ contexts[$0] }) else {
      preconditionFailure("each protocol has a name")
    }
    return TLSLayer(accepting: context)
  }

  /// Reads the files again, and checks them. Nothing changes before `use`.
  /// - Returns: What the files mean now; nil if their contents are the same.
  func prepareReload(_ settings: TLSSettings) throws(TLSFileError) -> TLSConfiguration? {
    let files = try TLSFiles(settings)
    return current.withLock { $0.digests } == files.digests ? nil : try TLSConfiguration(files)
  }

  /// Makes new connections use a configuration.
  func use(_ configuration: TLSConfiguration) { current.withLock { $0 = configuration } }

  /// What expires, in the order of the settings.
  var expiries: [TLSExpiry] { current.withLock { $0.expiries } }

  /// What open connections depend on.
  var status: CertificateStatus { current.withLock { $0.status } }
}

/// When a certificate or a revocation list expires.
struct TLSExpiry: Sendable {
  let description: String
  /// In seconds since 1970.
  let time: Int64

  /// The number of whole days that are left.
  /// - Parameter now: In seconds since 1970.
  func days(from now: Int64) -> UInt64 { UInt64(max(0, time - now)) / 86_400 }
}

/// The reason why a file can't be used for TLS.
package struct TLSFileError: Error, Equatable, Sendable, CustomStringConvertible {
  package let description: String

  fileprivate init(_ description: String) { self.description = description }
}

/// The contents of the files.
private struct TLSFiles {
  struct Pair {
    let certificate: TLSFile
    let key: TLSFile
  }

  let pairs: [Pair]
  let authorities: TLSFile?
  let revocations: TLSFile?
  let requiresClientCertificates: Bool

  init(_ settings: TLSSettings) throws(TLSFileError) {
    var pairs: [Pair] = []
    for (certificate, key) in zip(settings.certificates, settings.keys) {
      pairs.append(Pair(certificate: try TLSFile(certificate), key: try TLSFile(key, trusting: .readableByGroup)))
    }
    self.pairs = pairs
    authorities = if let path = settings.clientAuthorities { try TLSFile(path) } else { nil }
    revocations = if let path = settings.revocations { try TLSFile(path) } else { nil }
    requiresClientCertificates = settings.clientCertificates == .required
  }

  /// What tells its contents from others.
  var digests: [String] {
    let files = pairs.flatMap { [$0.certificate, $0.key] } + [authorities, revocations].compactMap(\.self)
    return files.map { "\($0.path) \(SHA256.hexadecimal(of: $0.bytes))" } + ["\(requiresClientCertificates)"]
  }
}

private struct TLSFile {
  let path: String
  let bytes: [UInt8]

  private static let maxByteCount = 16 << 20

  init(_ path: String, trusting trust: FileTrust = .writableByOwner) throws(TLSFileError) {
    self.path = path
    do { bytes = try readFile(path, maxByteCount: Self.maxByteCount, trusting: trust) } catch {
      throw TLSFileError("\(path): \(error.reason)")
    }
  }
}

/// What the files mean.
struct TLSConfiguration: Sendable {
  /// What the files contained. The private keys themselves are only where OpenSSL keeps them.
  fileprivate let digests: [String]
  /// For listeners of each protocol.
  let contexts: [String: TLSContext]
  let expiries: [TLSExpiry]
  private let revoked: Set<CertificateStatus.Revoked>

  /// What open connections depend on.
  var status: CertificateStatus { CertificateStatus(expiry: expiries.map(\.time).min(), revoked: revoked) }

  fileprivate init(_ files: TLSFiles) throws(TLSFileError) {
    guard !files.pairs.isEmpty else {
      throw TLSFileError("tls.certificates is empty, but a socket that is open needs one")
    }
    digests = files.digests
    do {
      var identities: [TLSIdentity] = []
      for pair in files.pairs {
        let identity = try TLSIdentity(
          chain: pair.certificate.bytes, key: pair.key.bytes, names: (pair.certificate.path, pair.key.path))
        try identity.validate(at: Int64(time(nil)))
        identities.append(identity)
      }
      let revocations = try files.revocations.map { file throws(TLSError) in
        try RevocationList.readAll(file.bytes, from: file.path)
      }
      let clients = try Self.clients(files, revocations ?? [])
      var contexts: [String: TLSContext] = [:]
      for spoken in [ListenerProtocol.native, .resp, .http] {
        guard let name = spoken.applicationName else { continue }
        contexts[name] = try TLSContext.server(
          identities, clients: clients, applicationProtocol: name, mayBeUnnamed: !spoken.mustBeNamed)
      }
      self.contexts = contexts
      revoked = Set(
        (revocations ?? []).flatMap { list in
          list.serials.map { CertificateStatus.Revoked(issuer: list.issuer, serial: $0) }
        })
      expiries =
        identities.map { TLSExpiry(description: "the certificate of \($0.certificate.subject)", time: $0.expiry) }
        + (revocations ?? []).map { list in
          TLSExpiry(description: "the revocation list of \(list.issuer)", time: list.expiry)
        }
    } catch { throw TLSFileError(error.description) }
  }

  private static func clients(
    _ files: TLSFiles, _ revocations: [RevocationList]
  ) throws(TLSError) -> TLSContext.ClientCertificates {
    guard let file = files.authorities else { return .ignored }
    let trust = TLSTrust(
      .authorities(try Certificate.readAll(file.bytes, from: file.path)), revocations: revocations)
    return files.requiresClientCertificates ? .required(trust) : .optional(trust)
  }
}
