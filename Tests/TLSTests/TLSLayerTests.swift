import Glibc
import Platform
import TLSTestSupport
import TestSupport
import Testing

@testable import TLS

/// What happens to the bytes of a TLS connection.
@Suite struct TLSLayerTests {
  private static let authority = TestAuthority()

  private static func contexts() throws -> (server: TLSContext, client: TLSContext) {
    (
      try TLSContext.server([try authority.issue().identity()]),
      try TLSContext.client(trusting: authority.trust())
    )
  }

  private func openPair() throws -> TLSPair {
    let (server, client) = try Self.contexts()
    let pair = try TLSPair(server, client)
    #expect(pair.shakeHands() == .init(server: .done, client: .done))
    return pair
  }

  @Test(arguments: [1, 16_383, 16_384, 16_385, 65_536, 65_537, 3_000_000])
  func `bytes arrive as they were sent, in both directions`(count: Int) throws {
    let pair = try openPair()
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    for roomSize in [100, 40_000] where roomSize > 100 || count < 100_000 {
      #expect(try TLSPair.move(bytes, from: pair.client, to: pair.server, roomSize: roomSize) == bytes)
      #expect(try TLSPair.move(bytes, from: pair.server, to: pair.client, roomSize: roomSize) == bytes)
    }
  }

  @Test func `an empty channel would block, and holds nothing`() throws {
    let pair = try openPair()
    #expect(pair.server.receiveOnce().transfer == .wouldBlock)
    var holdsInput = pair.server.holdsInput
    #expect(!holdsInput)
    #expect(pair.client.sendAll([1, 2, 3]) == .moved(3))
    #expect(pair.server.receiveOnce(2).bytes == [1, 2])
    // The socket reports nothing of the third byte.
    holdsInput = pair.server.holdsInput
    #expect(holdsInput)
    #expect(pair.server.receiveOnce(2).bytes == [3])
    holdsInput = pair.server.holdsInput
    #expect(!holdsInput)
  }

  @Test func `a full socket blocks the sender, which continues with the same bytes`() throws {
    let pair = try openPair()
    let bytes = (0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ $0 >> 9) }
    var sentCount = 0
    while case .moved(let count) = pair.client.sendAll(Array(bytes[sentCount...])), count > 0 { sentCount += count }
    #expect(sentCount < bytes.count)
    #expect(pair.client.sendAll(Array(bytes[sentCount...])) == .wouldBlock)
    var received: [UInt8] = []
    while received.count < bytes.count {
      let (transfer, arrived) = pair.server.receiveOnce(50_000)
      received += arrived
      if transfer == .wouldBlock, sentCount == bytes.count { break }
      // From another place in memory.
      if case .moved(let count) = pair.client.sendAll(Array(bytes[sentCount...])) { sentCount += count }
    }
    #expect(received == bytes)
  }

  @Test func `the announced end is the end of the stream, and a missing one is an error`() throws {
    var pair = try openPair()
    #expect(pair.client.sendAll([7]) == .moved(1))
    #expect(pair.client.shutdownSending() == .done)
    #expect(pair.server.receiveOnce().bytes == [7])
    #expect(pair.server.receiveOnce().transfer == .moved(0))
    // The other direction is still open.
    #expect(try TLSPair.move([8, 9], from: pair.server, to: pair.client) == [8, 9])

    pair = try openPair()
    #expect(pair.client.sendAll([7]) == .moved(1))
    pair.client.socket.shutdownSending()
    #expect(pair.server.receiveOnce().bytes == [7])
    let cutOff = ChannelError.layer(
      "the connection was cut off: the peer has not announced its end (close_notify)")
    #expect(pair.server.receiveOnce().transfer == .failed(cutOff))
    #expect(pair.server.receiveOnce().transfer == .failed(cutOff))
  }

  @Test func `handshakes and records may be split at every byte`() throws {
    let (serverContext, clientContext) = try Self.contexts()
    let relay = try Relay(serverContext, clientContext)
    for _ in 0..<20_000 where !relay.isOpen { relay.step(byteCount: 1) }
    #expect(relay.isOpen)
    let bytes = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    #expect(relay.client.sendAll(bytes) == .moved(bytes.count))
    var received: [UInt8] = []
    for _ in 0..<30_000 where received.count < bytes.count {
      relay.step(byteCount: 1)
      repeat { received += relay.server.receiveOnce(5_000).bytes } while relay.server.holdsInput
    }
    #expect(received == bytes)
  }

  @Test func `a changed byte ends the connection`() throws {
    let (serverContext, clientContext) = try Self.contexts()
    for position in [0, 3, 5, 20, 30] {
      let relay = try Relay(serverContext, clientContext)
      for _ in 0..<100 where !relay.isOpen { relay.step(byteCount: 10_000) }
      #expect(relay.isOpen)
      #expect(relay.client.sendAll(Array(repeating: 5, count: 64)) == .moved(64))
      relay.step(byteCount: 10_000) { $0[position] ^= 0x40 }
      // A length that has grown makes the server wait for the rest.
      guard position != 3 else { continue }
      guard case .failed(.layer(let reason)) = relay.server.receiveOnce().transfer else {
        Issue.record("the change of byte \(position) was not noticed")
        continue
      }
      #expect(reason.hasPrefix("a TLS connection has failed: "))
    }
  }

  @Test func `garbage and plain text end the handshake`() throws {
    let (serverContext, _) = try Self.contexts()
    var random = SeededGenerator(seed: 7)
    let inputs: [[UInt8]] =
      [Array("GET / HTTP/1.1\r\n\r\n".utf8), [0x16, 3, 1, 0xFF, 0xFF] + Array(repeating: 0, count: 100)]
      + (0..<50).map { _ in (0..<200).map { _ in random.next() } }
    for input in inputs {
      let ends = try SocketPair()
      let server = ByteChannel(ends.first, layer: TLSLayer(accepting: serverContext))
      let stranger = ends.second
      #expect(unsafe input.withUnsafeBytes { unsafe stranger.send($0) } == .moved(input.count))
      stranger.shutdownSending()
      // The first call may have to wait for the end of the stream.
      _ = server.continueHandshake()
      guard case .failed = server.continueHandshake() else {
        Issue.record("\(input) is no handshake")
        continue
      }
      // A failed layer stays failed.
      guard case .failed = server.continueHandshake() else {
        Issue.record("it continued")
        continue
      }
    }
  }

  @Test func `a client that speaks only TLS 1.2 is refused`() throws {
    // The beginning of a hello of TLS 1.2 with one cipher and no extensions.
    let hello: [UInt8] = [3, 3] + Array(repeating: 9, count: 32) + [0, 0, 2, 0xC0, 0x2F, 1, 0]
    let message: [UInt8] = [1, 0, 0, UInt8(hello.count)] + hello
    let (serverContext, _) = try Self.contexts()
    let ends = try SocketPair()
    let server = ByteChannel(ends.first, layer: TLSLayer(accepting: serverContext))
    let stranger = ends.second
    let record: [UInt8] = [0x16, 3, 1, 0, UInt8(message.count)] + message
    #expect(unsafe record.withUnsafeBytes { unsafe stranger.send($0) } == .moved(record.count))
    guard case .failed(let error) = server.continueHandshake() else {
      Issue.record("it was accepted")
      return
    }
    #expect("\(error)".contains("unsupported protocol"))
    // The alert protocol_version.
    var room = [UInt8](repeating: 0, count: 100)
    #expect(unsafe room.withUnsafeMutableBytes { unsafe stranger.receive(into: $0) } == .moved(7))
    #expect(room[5...6] == [2, 70])
  }
}

/// Two ends of a TLS connection with a relay between them, which passes on as much as it is told.
private final class Relay {
  let server: ByteChannel
  let client: ByteChannel
  private let serverSide: Descriptor
  private let clientSide: Descriptor
  private var (serverDone, clientDone) = (false, false)

  var isOpen: Bool { serverDone && clientDone }

  init(_ serverContext: TLSContext, _ clientContext: TLSContext) throws(SystemError) {
    let near = try SocketPair()
    let far = try SocketPair()
    server = ByteChannel(near.first, layer: TLSLayer(accepting: serverContext))
    serverSide = near.second
    client = ByteChannel(far.first, layer: TLSLayer(connectingTo: "localhost", clientContext))
    clientSide = far.second
  }

  /// Passes on some bytes in both directions, and continues the handshakes.
  func step(byteCount: Int, change: (inout [UInt8]) -> Void = { _ in }) {
    if !clientDone { clientDone = client.continueHandshake() == .done }
    Self.pass(byteCount, from: clientSide, to: serverSide, change)
    if !serverDone { serverDone = server.continueHandshake() == .done }
    Self.pass(byteCount, from: serverSide, to: clientSide, { _ in })
  }

  private static func pass(
    _ byteCount: Int, from source: borrowing Descriptor, to target: borrowing Descriptor,
    _ change: (inout [UInt8]) -> Void
  ) {
    var room = [UInt8](repeating: 0, count: byteCount)
    guard case .moved(let count) = unsafe room.withUnsafeMutableBytes({ unsafe source.receive(into: $0) }) else {
      return
    }
    var bytes = Array(room[..<count])
    change(&bytes)
    _ = unsafe bytes.withUnsafeBytes { unsafe target.send($0) }
  }
}
