import COpenSSL
import Platform

/// What OpenSSL reads records from and writes them to: the socket, without waiting.
///
/// Writing always succeeds. What the socket doesn't take is kept, so OpenSSL never has to repeat a write. Reading stops at
/// the first call that brought less than it could: the socket is empty then, which is not worth another system call.
///
/// Owned by a `TLSLayer`. OpenSSL finds it by its address, so it stays where it is.
@safe struct TLSTransport {
  /// The socket of the layer's calls, which borrow it.
  var socket: Int32 = -1
  /// Whether records are kept and sent together, with one system call.
  var collects = false
  /// Whether the socket has brought everything that it had.
  private(set) var isDrained = false
  /// Whether the last attempt to read found nothing, because more has to arrive first.
  private(set) var isWaiting = false
  /// Whether the peer has ended the stream of the socket.
  private var hasEnded = false
  /// The error of a system call that has failed.
  private(set) var error: SystemError?
  /// Why the peer's certificate was not accepted.
  var refusal: String?

  /// How often the peer has changed its keys since it has sent anything else. OpenSSL counts.
  let keyUpdateCount: UnsafeMutablePointer<UInt32>

  /// The maximum of `keyUpdateCount`. Each change costs much more than its few bytes, and can ask for a reply.
  private static let maxKeyUpdates = 16

  var hasTooManyKeyUpdates: Bool { unsafe keyUpdateCount.pointee > Self.maxKeyUpdates }

  /// Bytes that are not sent, from `sentCount` on.
  private var output: [UInt8] = []
  private var sentCount = 0

  init(keyUpdateCount: UnsafeMutablePointer<UInt32>) { unsafe self.keyUpdateCount = unsafe keyUpdateCount }

  var isFlushed: Bool { output.isEmpty }

  /// Begins a call that reads whatever the socket has.
  mutating func beginReading(_ socket: Int32) {
    self.socket = socket
    isDrained = false
  }

  /// Sends what is kept, as far as the socket takes it.
  /// - Returns: Whether nothing is left.
  mutating func flush() -> Bool {
    while sentCount < output.count {
      let socket = socket
      let transfer = unsafe output.withUnsafeBytes { bytes in
        unsafe Socket.send(UnsafeRawBufferPointer(rebasing: bytes[sentCount...]), to: socket)
      }
      switch transfer {
      case .moved(let count): sentCount += count
      case .wouldBlock: return false
      case .failed(let error):
        self.error = error
        return false
      }
    }
    if !output.isEmpty { (output, sentCount) = ([], 0) }
    return true
  }

  fileprivate mutating func write(_ bytes: UnsafeRawBufferPointer) {
    var rest = unsafe bytes
    if isFlushed, !collects {
      switch unsafe Socket.send(bytes, to: socket) {
      case .moved(let count): unsafe rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
      case .wouldBlock: break
      case .failed(let error): self.error = error
      }
    }
    unsafe output.append(contentsOf: rest)
  }

  /// - Returns: The number of bytes; 0 at the end of the stream or after a failure; −1 if the socket is empty.
  fileprivate mutating func read(into room: UnsafeMutableRawBufferPointer) -> Int32 {
    if hasTooManyKeyUpdates { return 0 }
    isWaiting = isDrained
    if isDrained { return -1 }
    switch unsafe Socket.receive(into: room, from: socket) {
    case .moved(let count):
      hasEnded = count == 0
      isDrained = count > 0 && count < room.count
      return Int32(count)
    case .wouldBlock:
      (isDrained, isWaiting) = (true, true)
      return -1
    case .failed(let error):
      self.error = error
      return 0
    }
  }
}

// MARK: - The transport as a BIO

extension TLSTransport {
  /// Makes the BIO of a transport, which has to outlive it; nil without memory.
  static func makeBIO(_ transport: UnsafeMutablePointer<TLSTransport>) -> OpaquePointer? {
    guard let method = unsafe bioMethod.pointer, let bio = unsafe BIO_new(method) else { return nil }
    unsafe BIO_set_data(bio, transport)
    unsafe BIO_set_init(bio, 1)
    return unsafe bio
  }

  /// Safe because it doesn't change after it was made.
  @safe
  private struct Method: @unchecked Sendable {
    let pointer: OpaquePointer?
  }

  private static let bioMethod: Method = {
    guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "larder") else {
      return unsafe Method(pointer: nil)
    }
    unsafe BIO_meth_set_read(method) { bio, room, size in
      unsafe COpenSSL_BIO_clear_retry_flags(bio)
      let transport = unsafe transport(of: bio)
      let count = unsafe transport.pointee.read(into: UnsafeMutableRawBufferPointer(start: room, count: Int(size)))
      if count < 0 { unsafe COpenSSL_BIO_set_retry_read(bio) }
      return count
    }
    unsafe BIO_meth_set_write(method) { bio, bytes, size in
      let transport = unsafe transport(of: bio)
      unsafe transport.pointee.write(UnsafeRawBufferPointer(start: bytes, count: Int(size)))
      return size
    }
    unsafe BIO_meth_set_ctrl(method) { bio, command, _, _ in
      switch command {
      case BIO_CTRL_FLUSH: 1
      case BIO_CTRL_EOF: unsafe transport(of: bio).pointee.hasEnded ? 1 : 0
      default: 0
      }
    }
    return unsafe Method(pointer: method)
  }()

  private static func transport(of bio: OpaquePointer?) -> UnsafeMutablePointer<TLSTransport> {
    unsafe BIO_get_data(bio).assumingMemoryBound(to: TLSTransport.self)
  }
}
