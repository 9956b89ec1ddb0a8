import Glibc
import LarderServer
import Platform
import TestSupport
import Testing
import Wire

/// A client whose bytes pass a layer, and that waits for the server. One thread at a time may use it.
final class LayeredClient {
  private let channel: ByteChannel
  private var received = ByteBuffer()

  enum Failure: Error, Equatable {
    case timedOut, ended
    case failed(ChannelError)
  }

  /// Connects, and completes the handshake.
  init(_ address: Address, _ layer: any ChannelLayer) throws {
    switch try Socket.connect(to: address) {
    case .connected(let socket): channel = ByteChannel(socket, layer: layer)
    case .pending(let socket): channel = ByteChannel(socket, layer: layer)
    }
    while true {
      switch channel.continueHandshake() {
      case .done: return
      case .waiting: try wait(for: channel.events.receiving)
      case .failed(let error): throw Failure.failed(error)
      }
    }
  }

  /// The hello, and the request that opens a store, which gets handle 1. Their ids are 1 and 2.
  static func opening(_ store: String = "test") -> [UInt8] {
    var hello = ByteBuffer()
    hello.appendRequest(ClientHello(credit: 1 << 24, name: "test"), id: 1)
    return hello.toArray() + Request.make(.storeOpen, store: 0, id: 2, Array(store.utf8))
  }

  /// Exchanges the hello, and opens a store, which gets handle 1.
  func open(_ store: String = "test") throws {
    try send(Self.opening(store))
    for id in [1, 2] as [UInt32] { guard try receive().id == id else { throw Failure.ended } }
  }

  // MARK: Sending

  func send(_ bytes: [UInt8]) throws {
    var sentCount = 0
    while sentCount < bytes.count {
      switch unsafe bytes[sentCount...].withUnsafeBytes({ unsafe channel.send($0) }) {
      case .moved(let count): sentCount += count
      case .wouldBlock: try wait(for: channel.events.sending)
      case .failed(let error): throw Failure.failed(error)
      }
    }
  }

  /// Sends as much as the channel accepts without waiting.
  /// - Returns: The number of bytes sent.
  func sendWithoutBlocking(_ bytes: [UInt8]) -> Int {
    if case .moved(let count) = unsafe bytes.withUnsafeBytes({ unsafe channel.send($0) }) { count } else { 0 }
  }

  /// Sends bytes, and receives frames meanwhile.
  /// - Returns: The first frames that arrive, when everything has been sent.
  func exchange(_ bytes: [UInt8], forFrames count: Int) throws -> [Reply] {
    var (sentCount, replies) = (0, [Reply]())
    while sentCount < bytes.count || replies.count < count {
      if sentCount < bytes.count { sentCount += sendWithoutBlocking(Array(bytes[sentCount...].prefix(1 << 17))) }
      if try !receiveArrived() {
        try wait(for: channel.events.interest(receives: true, sends: sentCount < bytes.count))
      }
      while replies.count < count, let reply = nextReply() { replies.append(reply) }
    }
    return replies
  }

  /// Sends a pipeline of puts and gets with these ids, and expects their replies in order.
  func expectOrderedReplies(_ ids: Range<UInt32>) throws {
    let requests = ids.flatMap { id in
      id % 2 == 0 ? Request.put("key\(id)", [UInt8(id & 0xFF)], id: id) : Request.get("key\(id - 1)", id: id)
    }
    for (id, reply) in zip(ids, try exchange(requests, forFrames: ids.count)) {
      #expect(reply.id == id && reply.isDone)
      if id % 2 == 1 { #expect(reply.entries.first?.value == [UInt8((id - 1) & 0xFF)]) }
    }
  }

  func endSending() throws {
    while channel.shutdownSending() == .waiting { try wait(for: channel.events.receiving) }
  }

  /// Ends the stream behind the layer's back.
  func cutOff() { channel.socket.shutdownSending() }

  // MARK: Receiving

  /// Returns the next frame.
  func receive() throws -> Reply {
    while true {
      if let reply = nextReply() { return reply }
      guard try fill() else { throw Failure.ended }
    }
  }

  /// Returns bytes that are no frame.
  func receiveBytes(_ count: Int) throws -> [UInt8] {
    while received.count < count { guard try fill() else { throw Failure.ended } }
    defer { received.consume(count) }
    return received.withSpan { $0.extracting(0..<count).toArray() }
  }

  /// Returns the figures of the server.
  func figures() throws -> [String: UInt64] {
    try send(Request.make(.stats, store: 0, id: 0x5AA5))
    let reply = try receive()
    guard let figures = unsafe Figure.decode(reply.body.span.bytes) else { throw Failure.ended }
    return Dictionary(uniqueKeysWithValues: figures.map { ($0.name, $0.value) })
  }

  /// Returns whether the server replies to a ping.
  func isServed() throws -> Bool {
    try send(Request.ping(0x1234))
    return try receive().id == 0x1234
  }

  /// Returns whether the server ends the stream properly, without sending anything else.
  func isAtEnd() throws -> Bool { try received.isEmpty && !fill() }

  private func nextReply() -> Reply? {
    guard case .frame(let header) = received.withSpan({ FrameScan($0, at: 0, maxLength: 1 << 26) }) else { return nil }
    let body = received.withSpan { $0.extracting(header.body(at: 0)).toArray() }
    received.consume(header.frameSize)
    return Reply(header, body)
  }

  /// Waits for more bytes.
  /// - Returns: False at the end of the stream.
  private func fill() throws -> Bool {
    let previousCount = received.count
    do {
      while try !receiveArrived() { try wait(for: channel.events.receiving) }
    } catch Failure.ended { return false }
    return received.count > previousCount
  }

  /// Receives what has arrived.
  /// - Returns: Whether anything has.
  private func receiveArrived() throws -> Bool {
    let transfer = unsafe received.fill(1 << 16) { room -> (Int, ChannelTransfer) in
      let transfer = unsafe channel.receive(into: room)
      return if case .moved(let count) = transfer { (count, transfer) } else { (0, transfer) }
    }
    switch transfer {
    case .moved(0): throw Failure.ended
    case .moved: return true
    case .wouldBlock: return false
    case .failed(let error): throw Failure.failed(error)
    }
  }

  private func wait(for events: Poll.Interest) throws {
    guard channel.socket.wait(for: events, milliseconds: 20_000) else { throw Failure.timedOut }
  }
}
