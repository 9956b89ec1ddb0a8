/// What moves the bytes of a connection: a socket, or a layer over one, such as encryption.
///
/// A plain channel is its socket. It has no handshake, and each call is a system call. A channel with a layer has phases:
/// the handshake before the first byte, and the shutdown after the last one. One thread at a time uses a channel.
package struct ByteChannel: ~Copyable {
  /// The socket, to poll it and to identify its peer. Bytes that don't go through the channel bypass the layer.
  package let socket: Descriptor
  /// Whether the connection's bytes are on the socket as they are, because there is no layer.
  package let isPlain: Bool
  private let layer: (any ChannelLayer)?

  package init(_ socket: consuming Descriptor, layer: (any ChannelLayer)? = nil) {
    self.socket = socket
    self.layer = layer
    isPlain = layer == nil
  }

  // MARK: Phases

  /// Continues the handshake as far as possible without waiting. Nothing is received or sent before it is done.
  package func continueHandshake() -> ChannelProgress { layer?.continueHandshake(over: socket) ?? .done }

  /// Shuts down the sending side, as far as possible without waiting. The peer reads the end of the stream after
  /// everything sent before.
  package func shutdownSending() -> ChannelProgress {
    let progress = layer?.continueShutdown(over: socket) ?? .done
    if progress != .waiting { socket.shutdownSending() }
    return progress
  }

  // MARK: Bytes

  /// Receives bytes. `moved(0)` is the end of the stream.
  package func receive(into room: UnsafeMutableRawBufferPointer) -> ChannelTransfer {
    guard let layer else { return ChannelTransfer(unsafe socket.receive(into: room)) }
    return unsafe layer.receive(into: room, from: socket)
  }

  /// Receives bytes that nobody will look at, until the peer closes the connection. They may be the layer's own.
  package func discard(using room: UnsafeMutableRawBufferPointer) -> ChannelTransfer {
    ChannelTransfer(unsafe socket.receive(into: room))
  }

  /// Sends bytes. If not all of them are moved, the channel would block.
  package func send(_ bytes: UnsafeRawBufferPointer) -> ChannelTransfer {
    guard let layer else { return ChannelTransfer(unsafe socket.send(bytes)) }
    return unsafe send(bytes, through: layer)
  }

  /// Sends pieces of memory one after the other, on a plain channel with one system call. If not all of them are moved,
  /// the channel would block.
  package func send(_ pieces: inout SendPieces) -> ChannelTransfer {
    guard let layer else { return ChannelTransfer(socket.send(&pieces)) }
    var sentCount = 0
    for index in 0..<pieces.count {
      let piece = unsafe pieces[index]
      switch unsafe send(piece, through: layer) {
      case .moved(let count):
        sentCount += count
        if count < piece.count { return .moved(sentCount) }
      case let result: return sentCount > 0 ? .moved(sentCount) : result
      }
    }
    return .moved(sentCount)
  }

  private func send(_ bytes: UnsafeRawBufferPointer, through layer: any ChannelLayer) -> ChannelTransfer {
    var sentCount = 0
    while sentCount < bytes.count {
      switch unsafe layer.send(UnsafeRawBufferPointer(rebasing: bytes[sentCount...]), to: socket) {
      case .moved(let count):
        precondition(count > 0, "a layer that sends nothing would block")
        sentCount += count
      case let result: return sentCount > 0 ? .moved(sentCount) : result
      }
    }
    return .moved(sentCount)
  }

  /// The peer's certificate, once the handshake is done; nil if it has shown none.
  package var peerCertificate: PeerCertificate? { layer?.peerCertificate }

  // MARK: Polling

  /// Whether it holds input that the poll doesn't report, so that it must be read again without an event.
  package var holdsInput: Bool { layer?.holdsInput ?? false }

  /// The events that it waits for.
  package var events: ChannelEvents { layer?.events ?? ChannelEvents() }
}

/// The events of its socket that a channel waits for.
package struct ChannelEvents: Equatable, Sendable {
  /// What it waits for in order to receive, or to continue the handshake or the shutdown. A layer may have to write
  /// first.
  package var receiving: Poll.Interest
  /// What it waits for in order to send. A layer may have to read first.
  package var sending: Poll.Interest

  package init(receiving: Poll.Interest = .reading, sending: Poll.Interest = .writing) {
    (self.receiving, self.sending) = (receiving, sending)
  }

  /// Returns the events to poll for.
  package func interest(receives: Bool, sends: Bool) -> Poll.Interest {
    (receives ? receiving : []).union(sends ? sending : [])
  }

  /// Returns what can be tried after an event.
  package func readiness(for event: Poll.Event) -> (receives: Bool, sends: Bool) {
    var ready: Poll.Interest = event.readable ? .reading : []
    if event.writable { ready.insert(.writing) }
    return (!receiving.isDisjoint(with: ready), !sending.isDisjoint(with: ready))
  }
}

/// The result of receiving or sending. A channel that would have to wait isn't an error.
package enum ChannelTransfer: Equatable, Sendable {
  case moved(Int)
  case wouldBlock
  case failed(ChannelError)

  @inline(__always)
  init(_ transfer: Transfer) {
    switch transfer {
    case .moved(let count): self = .moved(count)
    case .wouldBlock: self = .wouldBlock
    case .failed(let error): self = .failed(.system(error))
    }
  }
}

/// How far a handshake or a shutdown has come.
package enum ChannelProgress: Equatable, Sendable {
  case done
  /// It continues after `ChannelEvents.receiving`.
  case waiting
  case failed(ChannelError)
}

/// The reason why a channel has failed.
package enum ChannelError: Error, Equatable, Sendable, CustomStringConvertible {
  case system(SystemError)
  /// What a layer says about it.
  case layer(String)
  /// One side doesn't accept the other one, and another attempt would end in the same way.
  case refused(String)

  package var description: String {
    switch self {
    case .system(let error): error.description
    case .layer(let reason), .refused(let reason): reason
    }
  }

  /// Whether the system has no memory.
  package var isOutOfMemory: Bool { if case .system(let error) = self { error.isOutOfMemory } else { false } }
}

/// What a channel has between a connection and its socket. It makes the connection's bytes those that are on the socket,
/// and the other way around.
///
/// One thread at a time uses a layer, and not always the same one. No call waits. After a call has returned `wouldBlock`
/// or `waiting`, it is repeated when the socket reports one of `events`. Only changes are reported, so either the system
/// has refused the layer what it waits for, or the call has changed `events`. After a failure, every call fails.
package protocol ChannelLayer: AnyObject {
  /// Continues the handshake as far as possible. Called until it is done or has failed, and before everything else. What
  /// arrives behind the handshake, possibly with the same bytes of the socket, is held as input.
  func continueHandshake(over socket: borrowing Descriptor) -> ChannelProgress

  /// Tells the peer that nothing more is sent, as far as possible. Nothing waits to be sent then. Called until it is
  /// done or has failed.
  func continueShutdown(over socket: borrowing Descriptor) -> ChannelProgress

  /// Receives bytes. `moved(0)` is the end of the stream, as the peer has announced it.
  func receive(into room: UnsafeMutableRawBufferPointer, from socket: borrowing Descriptor) -> ChannelTransfer

  /// Sends one or more bytes of the beginning of `bytes`. Bytes are moved when the socket has taken all that they have
  /// become. If the layer would block in the middle of that, the next call begins with the same bytes, but they may be
  /// at another place in memory, and more or fewer bytes may follow them.
  func send(_ bytes: UnsafeRawBufferPointer, to socket: borrowing Descriptor) -> ChannelTransfer

  /// Whether `receive` may return something that the socket won't report: it is inside the layer, or the socket has
  /// reported it already, and an earlier `receive` returned what was inside the layer instead. False until the handshake
  /// is done, and after a `receive` that would block, has failed, or has returned the end of the stream.
  var holdsInput: Bool { get }

  /// Who is at the other end, once the handshake is done; nil if the layer doesn't know.
  var peerCertificate: PeerCertificate? { get }

  /// The events that the last calls wait for.
  var events: ChannelEvents { get }
}

/// The certificate that the other end of a channel has proved to own.
package struct PeerCertificate: Equatable, Sendable {
  /// The name by which access rules call its owner.
  package let principal: String
  /// Its serial number, in hexadecimal digits.
  package let serial: String
  /// The name of the authority that has issued it.
  package let issuer: String

  package init(principal: String, serial: String, issuer: String) {
    (self.principal, self.serial, self.issuer) = (principal, serial, issuer)
  }
}

/// Makes the layer of a new connection's channel; nil without memory. Called on any thread.
package typealias ChannelLayerFactory = @Sendable () -> (any ChannelLayer)?
