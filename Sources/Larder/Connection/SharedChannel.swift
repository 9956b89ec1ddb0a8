import Platform

/// The channel of a connection, which several threads use. It is closed when the last of them releases it.
///
/// Safe because a plain channel does not change, and one with a layer is used only under a lock. No other lock is taken
/// meanwhile.
final class SharedChannel: @unchecked Sendable {
  private let channel: ByteChannel
  /// The events that epoll was last asked for. Its lock is that of the layer.
  private let polledEvents = Lock(ChannelEvents())

  init(_ channel: consuming ByteChannel) {
    self.channel = channel
  }

  /// Whether it is a socket without a layer.
  var isPlain: Bool { channel.isPlain }

  /// The number of its socket, for epoll.
  var number: Int32 { channel.socket.number }

  /// The error of a pending connection that has failed; nil if it is established.
  var connectionError: SystemError? { Socket.connectionError(of: channel.socket) }

  // MARK: Bytes

  func receive(into room: UnsafeMutableRawBufferPointer) -> ChannelTransfer {
    if isPlain { return unsafe channel.receive(into: room) }
    return polledEvents.withLock { _ in unsafe channel.receive(into: room) }
  }

  func send(_ bytes: UnsafeRawBufferPointer) -> ChannelTransfer {
    if isPlain { return unsafe channel.send(bytes) }
    return polledEvents.withLock { _ in unsafe channel.send(bytes) }
  }

  // MARK: Phases

  func continueHandshake() -> ChannelProgress {
    if isPlain { return .done }
    return polledEvents.withLock { _ in channel.continueHandshake() }
  }

  /// Shuts down the sending side of a channel with a layer, so that the server sees that nothing is missing. Waits in its
  /// thread if the socket takes no more, but not for long.
  func shutDown() {
    let deadline = monotonicMilliseconds() + 1_000
    while !isPlain {
      let (progress, events) = polledEvents.withLock { _ in (channel.shutdownSending(), channel.events) }
      let now = monotonicMilliseconds()
      guard progress == .waiting, now < deadline,
        channel.socket.wait(for: events.receiving, milliseconds: Int32(deadline - now))
      else { return }
    }
  }

  // MARK: Polling

  /// Whether it holds input that epoll does not report.
  var holdsInput: Bool { !isPlain && polledEvents.withLock { _ in channel.holdsInput } }

  /// Whether it waits for other events than epoll was asked for.
  var hasNewEvents: Bool { !isPlain && polledEvents.withLock { $0 != channel.events } }

  /// Returns what epoll must be asked for.
  func interest(receives: Bool, sends: Bool) -> Poll.Interest {
    if isPlain { return ChannelEvents().interest(receives: receives, sends: sends) }
    return polledEvents.withLock { events in
      events = channel.events
      return events.interest(receives: receives, sends: sends)
    }
  }

  /// Returns what can be tried after an event.
  func readiness(for event: Poll.Event) -> (receives: Bool, sends: Bool) {
    if isPlain { return (event.readable, event.writable) }
    return polledEvents.withLock { _ in channel.events.readiness(for: event) }
  }
}
