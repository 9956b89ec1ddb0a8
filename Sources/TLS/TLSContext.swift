import COpenSSL

/// What the connections of one configuration share: certificates, keys, and what is accepted. Connections of an earlier
/// configuration keep theirs.
///
/// TLS 1.3 only, without session tickets: a ticket would let a client resume its session after its certificate was revoked.
///
/// Safe because nothing changes after `init`, and OpenSSL's contexts may be used by several threads.
@safe
package final class TLSContext: @unchecked Sendable {
  let pointer: OpaquePointer
  /// Contexts for the names of other certificates.
  private let others: [(identity: TLSIdentity, context: TLSContext)]
  private let identity: TLSIdentity?
  private let trust: TLSTrust?
  /// The application protocol that the sides name; nil for none.
  let applicationProtocol: String?
  private let encodedProtocol: [UInt8]
  let isServer: Bool

  /// Whether a server asks its clients for certificates.
  package enum ClientCertificates: Sendable {
    case ignored
    case optional(TLSTrust)
    case required(TLSTrust)

    var trust: TLSTrust? {
      switch self {
      case .ignored: nil
      case .optional(let trust), .required(let trust): trust
      }
    }
  }

  /// A server's context.
  /// - Parameters:
  ///   - identities: The server's certificates, at least one. A client that names no server, or an unknown one, gets the
  ///     first.
  ///   - applicationProtocol: The protocol that must be among those that clients name (ALPN); nil if it doesn't matter
  ///     what they name.
  ///   - mayBeUnnamed: Whether clients may name no protocol at all.
  package static func server(
    _ identities: [TLSIdentity], clients: ClientCertificates = .ignored, applicationProtocol: String? = nil,
    mayBeUnnamed: Bool = false
  ) throws(TLSError) -> TLSContext {
    var others: [(TLSIdentity, TLSContext)] = []
    for identity in identities.dropFirst() {
      others.append((identity, try TLSContext(identity, clients, applicationProtocol, mayBeUnnamed, [])))
    }
    return try TLSContext(identities[0], clients, applicationProtocol, mayBeUnnamed, others)
  }

  private convenience init(
    _ identity: TLSIdentity, _ clients: ClientCertificates, _ applicationProtocol: String?, _ mayBeUnnamed: Bool,
    _ others: [(TLSIdentity, TLSContext)]
  ) throws(TLSError) {
    try self.init(
      isServer: true, identity: identity, trust: clients.trust, applicationProtocol: applicationProtocol,
      others: others)
    if applicationProtocol != nil, !mayBeUnnamed {
      unsafe SSL_CTX_set_client_hello_cb(pointer, Self.helloCallback, nil)
    }
    var mode = clients.trust == nil ? SSL_VERIFY_NONE : SSL_VERIFY_PEER
    if case .required = clients { mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT }
    unsafe SSL_CTX_set_verify(pointer, mode, TLSLayer.verifyCallback)
    if case .authorities(let certificates)? = clients.trust?.anchors {
      for certificate in certificates { unsafe SSL_CTX_add_client_CA(pointer, certificate.pointer) }
    }
  }

  /// A client's context.
  /// - Parameters:
  ///   - identity: The client's certificate; nil for none.
  ///   - applicationProtocol: The protocol that the server must name (ALPN), too; nil for none.
  package static func client(
    trusting trust: TLSTrust, identity: TLSIdentity? = nil, applicationProtocol: String? = nil
  ) throws(TLSError) -> TLSContext {
    let context = try TLSContext(
      isServer: false, identity: identity, trust: trust, applicationProtocol: applicationProtocol, others: [])
    unsafe SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, TLSLayer.verifyCallback)
    return context
  }

  private init(
    isServer: Bool, identity: TLSIdentity?, trust: TLSTrust?, applicationProtocol: String?,
    others: [(TLSIdentity, TLSContext)]
  ) throws(TLSError) {
    ERR_clear_error()
    guard let pointer = unsafe SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method()) else {
      throw TLSError("can't use OpenSSL: \(OpenSSLFailure.take().text)")
    }
    unsafe self.pointer = unsafe pointer
    self.isServer = isServer
    self.identity = identity
    self.trust = trust
    self.applicationProtocol = applicationProtocol
    self.others = others
    let name = Array((applicationProtocol ?? "").utf8)
    encodedProtocol = name.isEmpty ? [] : [UInt8(name.count)] + name
    ERR_clear_error()
    setUp()
    if let identity { try use(identity) }
    if let trust { unsafe try trust.apply(to: pointer) }
    if case .keys? = trust?.anchors {
      unsafe SSL_CTX_set_cert_verify_callback(pointer, Self.pinCallback, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  deinit { unsafe SSL_CTX_free(pointer) }

  private func setUp() {
    unsafe COpenSSL_SSL_CTX_set_min_proto_version(pointer, TLS1_3_VERSION)
    // A peer's certificates must be worth 112 bits: RSA of 2,048 bits or more, no SHA-1.
    unsafe SSL_CTX_set_security_level(pointer, 2)
    // Others cost a server up to a hundred times as much.
    unsafe COpenSSL_SSL_CTX_set1_groups_list(pointer, "X25519:P-256:P-384")
    unsafe COpenSSL_SSL_CTX_set_options(pointer)
    unsafe SSL_CTX_set_num_tickets(pointer, 0)
    unsafe COpenSSL_SSL_CTX_set_mode(
      pointer,
      Int(SSL_MODE_RELEASE_BUFFERS) | Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER) | Int(SSL_MODE_NO_AUTO_CHAIN))
    // One system call brings several records.
    unsafe COpenSSL_SSL_CTX_set_read_ahead(pointer, 1)
    let own = unsafe Unmanaged.passUnretained(self).toOpaque()
    if !isServer {
      if !encodedProtocol.isEmpty {
        unsafe SSL_CTX_set_alpn_protos(pointer, encodedProtocol, UInt32(encodedProtocol.count))
      }
      return
    }
    if !others.isEmpty { unsafe COpenSSL_SSL_CTX_set_tlsext_servername(pointer, Self.serverNameCallback, own) }
    if !encodedProtocol.isEmpty { unsafe SSL_CTX_set_alpn_select_cb(pointer, Self.protocolCallback, own) }
  }

  private func use(_ identity: TLSIdentity) throws(TLSError) {
    guard unsafe SSL_CTX_use_certificate(pointer, identity.certificate.pointer) == 1,
      unsafe SSL_CTX_use_PrivateKey(pointer, identity.key) == 1
    else {
      throw TLSError("can't use the certificate of \(identity.certificate.subject): \(OpenSSLFailure.take().text)")
    }
    for issuer in identity.issuers {
      guard unsafe COpenSSL_SSL_CTX_add1_chain_cert(pointer, issuer.pointer) == 1 else {
        throw TLSError("can't use the certificate of \(issuer.subject): \(OpenSSLFailure.take().text)")
      }
    }
  }

  // MARK: Decisions in a handshake

  private static func context(_ argument: UnsafeMutableRawPointer?) -> TLSContext? {
    unsafe argument.map { unsafe Unmanaged<TLSContext>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Chooses the certificate for the server's name that the client gives.
  private static let serverNameCallback:
    @convention(c) (OpaquePointer?, UnsafeMutablePointer<Int32>?, UnsafeMutableRawPointer?) -> Int32 = {
      ssl, _, argument in
      guard let context = unsafe context(argument),
        let name = unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)
      else { return SSL_TLSEXT_ERR_NOACK }
      let host = unsafe String(cString: name)
      if let identity = context.identity, identity.certificate.isFor(host) { return SSL_TLSEXT_ERR_OK }
      guard let other = context.others.first(where: { $0.identity.certificate.isFor(host) })?.context else {
        return SSL_TLSEXT_ERR_NOACK
      }
      unsafe SSL_set_SSL_CTX(ssl, other.pointer)
      return SSL_TLSEXT_ERR_OK
    }

  /// Refuses clients that name no application protocol.
  private static let helloCallback:
    @convention(c) (OpaquePointer?, UnsafeMutablePointer<Int32>?, UnsafeMutableRawPointer?) -> Int32 = {
      ssl, alert, _ in
      var bytes: UnsafePointer<UInt8>?
      var count = 0
      let type = UInt32(TLSEXT_TYPE_application_layer_protocol_negotiation)
      guard unsafe SSL_client_hello_get0_ext(ssl, type, &bytes, &count) != 1 else { return SSL_CLIENT_HELLO_SUCCESS }
      unsafe alert?.pointee = SSL_AD_NO_APPLICATION_PROTOCOL
      return SSL_CLIENT_HELLO_ERROR
    }

  /// Refuses clients that name other application protocols.
  private static let protocolCallback:
    @convention(c) (
      OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?,
      UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
    ) -> Int32 = { _, chosen, chosenCount, offered, offeredCount, argument in
      guard let context = unsafe context(argument) else { return SSL_TLSEXT_ERR_ALERT_FATAL }
      let name = context.encodedProtocol.dropFirst()
      let list = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredCount))
      var start = 0
      while start < list.count {
        let end = unsafe start + 1 + Int(list[start])
        guard end <= list.count else { break }
        if unsafe list[(start + 1)..<end].elementsEqual(name) {
          unsafe chosen?.pointee = unsafe list.baseAddress.map { unsafe $0 + start + 1 }
          unsafe chosenCount?.pointee = UInt8(name.count)
          return SSL_TLSEXT_ERR_OK
        }
        start = end
      }
      return SSL_TLSEXT_ERR_ALERT_FATAL
    }

  /// Verifies a certificate whose key must be one of the pinned ones: it is then its own authority.
  private static let pinCallback: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
    store, argument in
    guard let context = unsafe context(argument), case .keys(let digests)? = context.trust?.anchors,
      let pointer = unsafe X509_STORE_CTX_get0_cert(store), unsafe X509_up_ref(pointer) == 1
    else { return 0 }
    let certificate = unsafe Certificate(owning: pointer)
    guard digests.contains(certificate.keyDigest) else {
      unsafe TLSLayer.noteRefusal(store, certificate, "its key is not one of the expected keys")
      unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_UNTRUSTED)
      return 0
    }
    return unsafe COpenSSL_X509_STORE_CTX_trust_only(store, pointer)
  }
}
