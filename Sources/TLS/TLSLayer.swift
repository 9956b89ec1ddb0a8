import COpenSSL
import Platform

/// TLS 1.3 between a connection and its socket.
///
/// One `receive` makes one system call, and one `send` makes one for each 64 KiB. OpenSSL keeps no buffers while a
/// connection is idle.
@safe
package final class TLSLayer: ChannelLayer {
  private let context: TLSContext
  private let ssl: OpaquePointer
  private let transport: UnsafeMutablePointer<TLSTransport>
  private let keyUpdateCount: UnsafeMutablePointer<UInt32>
  /// The server that a client wants to talk to; nil on a server.
  private let host: String?

  private var isOpen = false
  private var hasShutDown = false
  private var hasEnded = false
  private var failure: ChannelError?
  /// The number of bytes whose records the socket has not taken completely.
  private var unsentCount = 0
  package private(set) var holdsInput = false

  /// The maximum number of bytes in a record: RFC 8446, section 5.1.
  private static let maxRecordBytes = 16 << 10
  /// The number of bytes that become records together. They are kept until the socket has taken them.
  private static let maxSendBytes = 64 << 10

  /// A layer on the side of a server.
  /// - Returns: nil without memory.
  package convenience init?(accepting context: TLSContext) { self.init(context, host: nil) }

  /// A layer on the side of a client.
  /// - Parameter host: The server's name or its numeric address, which its certificate must be for.
  /// - Returns: nil without memory.
  package convenience init?(connectingTo host: String, _ context: TLSContext) { self.init(context, host: host) }

  private init?(_ context: TLSContext, host: String?) {
    unsafe transport = .allocate(capacity: 1)
    unsafe keyUpdateCount = .allocate(capacity: 1)
    unsafe keyUpdateCount.initialize(to: 0)
    unsafe transport.initialize(to: TLSTransport(keyUpdateCount: keyUpdateCount))
    guard let ssl = unsafe SSL_new(context.pointer), let bio = unsafe TLSTransport.makeBIO(transport) else {
      unsafe transport.deinitialize(count: 1)
      unsafe transport.deallocate()
      unsafe keyUpdateCount.deallocate()
      return nil
    }
    unsafe self.ssl = unsafe ssl
    self.context = context
    self.host = host
    // Both directions have the same BIO, and one reference to it.
    unsafe SSL_set_bio(ssl, bio, bio)
    unsafe SSL_set_ex_data(ssl, 0, transport)
    unsafe COpenSSL_SSL_count_key_updates(ssl, keyUpdateCount)
    if let host { expect(host) } else { unsafe SSL_set_accept_state(ssl) }
  }

  deinit {
    unsafe SSL_free(ssl)
    unsafe transport.deinitialize(count: 1)
    unsafe transport.deallocate()
    unsafe keyUpdateCount.deallocate()
  }

  /// Accepts only certificates for a host, and names it to the server unless it is a numeric address.
  private func expect(_ host: String) {
    unsafe SSL_set_connect_state(ssl)
    let parameters = unsafe SSL_get0_param(ssl)
    unsafe X509_VERIFY_PARAM_set_hostflags(parameters, COpenSSL_host_flags)
    if unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 { return }
    ERR_clear_error()
    let isExpected = unsafe X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1
    let isNamed = unsafe COpenSSL_SSL_set_tlsext_host_name(ssl, host) == 1
    if !isExpected || !isNamed { failure = .refused("'\(host)' can't be the name of a server") }
  }

  // MARK: Polling

  package var events: ChannelEvents {
    let mustWrite = unsafe (!isOpen || hasShutDown) && !transport.pointee.isFlushed
    return ChannelEvents(receiving: mustWrite ? .writing : .reading)
  }

  // MARK: The handshake

  package func continueHandshake(over socket: borrowing Descriptor) -> ChannelProgress {
    if let failure { return .failed(failure) }
    unsafe transport.pointee.beginReading(socket.number)
    ERR_clear_error()
    let result = unsafe SSL_do_handshake(ssl)
    let isWaiting = unsafe result != 1 && transport.pointee.isWaiting
    guard result == 1 || isWaiting else { return .failed(handshakeFailed()) }
    guard unsafe transport.pointee.flush() else {
      return unsafe transport.pointee.error.map { .failed(fail(.system($0))) } ?? .waiting
    }
    if isWaiting { return .waiting }
    if !context.isServer, let expected = context.applicationProtocol, selectedProtocol != expected {
      return .failed(fail(.refused("the server doesn't serve the protocol \(expected)")))
    }
    isOpen = true
    holdsInput = true
    return .done
  }

  private var selectedProtocol: String {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    unsafe SSL_get0_alpn_selected(ssl, &name, &count)
    return unsafe String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
  }

  private func handshakeFailed() -> ChannelError {
    let error = OpenSSLFailure.take()
    // What OpenSSL tells the peer about it.
    _ = unsafe transport.pointee.flush()
    if let refusal = unsafe transport.pointee.refusal { return fail(.refused(refusal)) }
    if error.isReason(SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
      return fail(.refused("the client has shown no certificate"))
    }
    return fail(describe(error, during: "the TLS handshake"))
  }

  // MARK: The end

  package func continueShutdown(over socket: borrowing Descriptor) -> ChannelProgress {
    if let failure {
      hasShutDown = true
      unsafe transport.pointee.socket = socket.number
      guard unsafe !transport.pointee.flush(), unsafe transport.pointee.error == nil else { return .failed(failure) }
      return .waiting
    }
    unsafe transport.pointee.socket = socket.number
    if !hasShutDown {
      hasShutDown = true
      unsafe SSL_shutdown(ssl)
      ERR_clear_error()
    }
    if unsafe transport.pointee.flush() { return .done }
    return unsafe transport.pointee.error.map { .failed(fail(.system($0))) } ?? .waiting
  }

  // MARK: Bytes

  package func receive(
    into room: UnsafeMutableRawBufferPointer, from socket: borrowing Descriptor
  ) -> ChannelTransfer {
    if let failure { return reported(failure) }
    if hasEnded {
      holdsInput = false
      return .moved(0)
    }
    clearForeignErrors()
    unsafe transport.pointee.beginReading(socket.number)
    var count = 0
    while count < room.count {
      var readCount = 0
      guard unsafe SSL_read_ex(ssl, room.baseAddress.map({ unsafe $0 + count }), room.count - count, &readCount) == 1
      else {
        return endReading(count)
      }
      count += readCount
      unsafe keyUpdateCount.pointee = 0
      if unsafe transport.pointee.isDrained, unsafe SSL_has_pending(ssl) == 0 {
        holdsInput = false
        return .moved(count)
      }
    }
    holdsInput = true
    return .moved(count)
  }

  /// Ends a `receive` in which OpenSSL has nothing more.
  /// - Parameter count: The number of bytes that have arrived before.
  private func endReading(_ count: Int) -> ChannelTransfer {
    if unsafe transport.pointee.isWaiting, unsafe !transport.pointee.hasTooManyKeyUpdates {
      holdsInput = false
      return count > 0 ? .moved(count) : .wouldBlock
    }
    if unsafe SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0, unsafe transport.pointee.error == nil,
      ERR_peek_last_error() == 0
    {
      hasEnded = true
      holdsInput = count > 0
      return .moved(count)
    }
    let error = OpenSSLFailure.take()
    let failure: ChannelError =
      if let error = unsafe transport.pointee.error {
        .system(error)
      } else if unsafe transport.pointee.hasTooManyKeyUpdates {
        .layer("the peer has changed its keys again and again without sending anything")
      } else if error.isTruncation {
        .layer("the connection was cut off: the peer has not announced its end (close_notify)")
      } else {
        describe(error, during: "a TLS connection")
      }
    _ = fail(failure)
    guard count == 0 else {
      holdsInput = true
      return .moved(count)
    }
    return reported(failure)
  }

  private func reported(_ failure: ChannelError) -> ChannelTransfer {
    holdsInput = false
    return .failed(failure)
  }

  package func send(_ bytes: UnsafeRawBufferPointer, to socket: borrowing Descriptor) -> ChannelTransfer {
    if let failure { return .failed(failure) }
    unsafe transport.pointee.socket = socket.number
    if unsafe !transport.pointee.isFlushed {
      guard unsafe transport.pointee.flush() else { return blocked() }
      if unsentCount > 0 {
        defer { unsentCount = 0 }
        return .moved(unsentCount)
      }
    }
    let count = min(bytes.count, Self.maxSendBytes)
    unsafe transport.pointee.collects = count > Self.maxRecordBytes
    defer { unsafe transport.pointee.collects = false }
    var writtenCount = 0
    guard unsafe SSL_write_ex(ssl, bytes.baseAddress, count, &writtenCount) == 1 else {
      return .failed(fail(describe(OpenSSLFailure.take(), during: "a TLS connection")))
    }
    guard unsafe transport.pointee.flush() else {
      unsentCount = writtenCount
      return blocked()
    }
    return .moved(writtenCount)
  }

  private func blocked() -> ChannelTransfer {
    unsafe transport.pointee.error.map { .failed(fail(.system($0))) } ?? .wouldBlock
  }

  // MARK: The peer

  package var peerCertificate: PeerCertificate? {
    guard isOpen, let pointer = unsafe SSL_get1_peer_certificate(ssl) else { return nil }
    let certificate = unsafe Certificate(owning: pointer)
    return PeerCertificate(
      principal: certificate.principal ?? certificate.subject, serial: certificate.serial, issuer: certificate.issuer)
  }

  // MARK: Failures

  /// Clears the errors that other users of OpenSSL have left on the thread, so that no connection is blamed for them.
  @inline(__always)
  private func clearForeignErrors() { if ERR_peek_error() != 0 { ERR_clear_error() } }

  private func fail(_ error: ChannelError) -> ChannelError {
    failure = error
    return error
  }

  private func describe(_ error: OpenSSLFailure, during what: String) -> ChannelError {
    if let error = unsafe transport.pointee.error { return .system(error) }
    let peer = context.isServer ? "the client" : "the server"
    if let number = error.alert {
      let alert = TLSAlert(number: number)
      return if let refusal = alert.refusal {
        .refused("\(peer) has refused the connection: \(refusal) (TLS alert: \(alert.name))")
      } else {
        .layer("\(peer) has ended \(what) (TLS alert: \(alert.name))")
      }
    }
    if error.isTruncation { return .layer("\(peer) has closed the connection during \(what)") }
    return .layer("\(what) has failed: \(error.text)")
  }

  /// Notes why a certificate of the peer is not accepted. Called for each problem that OpenSSL finds.
  static let verifyCallback: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isAccepted, store in
    guard isAccepted == 0 else { return 1 }
    let error = unsafe X509_STORE_CTX_get_error(store)
    guard let pointer = unsafe X509_STORE_CTX_get_current_cert(store) ?? X509_STORE_CTX_get0_cert(store),
      unsafe X509_up_ref(pointer) == 1
    else { return 0 }
    unsafe noteRefusal(
      store, Certificate(owning: pointer), String(cString: X509_verify_cert_error_string(Int(error))))
    return 0
  }

  /// Notes why a certificate of the peer is not accepted.
  /// - Parameter store: The verification.
  static func noteRefusal(_ store: OpaquePointer?, _ certificate: Certificate, _ reason: String) {
    guard let ssl = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
      let data = unsafe SSL_get_ex_data(OpaquePointer(ssl), 0)
    else { return }
    let isServer = unsafe SSL_is_server(OpaquePointer(ssl)) == 1
    var text = "the \(isServer ? "client" : "server")'s certificate is not accepted: \(reason)"
    text += " (subject \(certificate.subject), issuer \(certificate.issuer), serial \(certificate.serial)"
    if !certificate.dnsNames.isEmpty { text += ", for \(certificate.dnsNames.joined(separator: ", "))" }
    unsafe data.assumingMemoryBound(to: TLSTransport.self).pointee.refusal = text + ")"
  }
}
