import Glibc
import Platform
import TLS
import TLSTestSupport

/// Runs both ends of a TLS connection over a wire that the input controls: it delivers bytes in any pieces, changes, drops
/// and inserts some, and cuts the connection.
///
/// A run passes if nothing traps, each end receives a prefix of what the other has sent, and learns of an end only after
/// everything that came before it. The first byte selects whether the wire leaves the handshake alone; then follow steps
/// of two bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTLS(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 0 else { return 0 }
  let input = unsafe Array(UnsafeBufferPointer(start: start, count: count))
  var connection = FuzzedConnection()
  if input[0] & 1 == 1 { connection.shakeHands() }
  var steps = input.dropFirst()
  while let action = steps.popFirst(), let amount = steps.popFirst() {
    connection.act(action, amount, &steps)
    connection.continueAll()
  }
  return 0
}

/// Both ends of a connection, and the wires that lead to them.
private struct FuzzedConnection: ~Copyable {
  private var server: FuzzedEnd
  private var client: FuzzedEnd

  private static let contexts: (server: TLSContext, client: TLSContext) = {
    let authority = TestAuthority()
    do {
      let certificates = try Certificate.readAll(authority.files.certificate, from: "authority")
      let trust = TLSTrust(.authorities(certificates))
      let identity = try authority.issue().identity()
      return (
        try .server([identity], clients: .required(trust), applicationProtocol: "larder/1"),
        try .client(trusting: trust, identity: identity, applicationProtocol: "larder/1")
      )
    } catch { fatalError("no certificates: \(error)") }
  }()

  init() {
    server = FuzzedEnd(TLSLayer(accepting: Self.contexts.server))
    client = FuzzedEnd(TLSLayer(connectingTo: "localhost", Self.contexts.client))
  }

  /// Continues both handshakes over an honest wire.
  mutating func shakeHands() {
    for _ in 0..<4 {
      continueAll()
      client.wire.deliver(.max, to: server)
      server.wire.deliver(.max, to: client)
    }
    guard server.isOpen, client.isOpen else { fatalError("an undisturbed handshake has not ended") }
  }

  mutating func act(_ action: UInt8, _ amount: UInt8, _ rest: inout ArraySlice<UInt8>) {
    if action & 0x80 == 0 {
      Self.act(action & 0x7F, Int(amount), &rest, from: &client, to: server)
    } else {
      Self.act(action & 0x7F, Int(amount), &rest, from: &server, to: client)
    }
  }

  private static func act(
    _ action: UInt8, _ amount: Int, _ rest: inout ArraySlice<UInt8>, from sender: inout FuzzedEnd,
    to receiver: borrowing FuzzedEnd
  ) {
    switch action % 9 {
    case 0: sender.send(amount)
    case 1: sender.send(amount << 8)
    case 2: sender.wire.deliver(amount, to: receiver)
    case 3: sender.wire.deliver(.max, to: receiver)
    case 4: sender.wire.flip(at: amount)
    case 5: sender.wire.drop(amount)
    case 6:
      sender.wire.insert(Array(rest.prefix(amount)))
      rest = rest.dropFirst(amount)
    case 7: sender.shutDown()
    default: sender.wire.cut(receiver)
    }
  }

  mutating func continueAll() {
    client.continueAll()
    server.continueAll()
    client.check(against: server)
    server.check(against: client)
  }
}

/// An end of a connection. What it sends are the bytes of one endless pattern.
private struct FuzzedEnd: ~Copyable {
  private let channel: ByteChannel
  /// The other end of the channel's socket.
  fileprivate let outlet: Descriptor
  /// What has left the channel, and its peer has not been given.
  fileprivate var wire = Wire()
  private(set) var isOpen = false
  private var hasFailed = false
  private var hasShutDown = false
  private var hasSeenEnd = false
  private var sentCount = 0
  private var receivedCount = 0

  init(_ layer: TLSLayer?) {
    var numbers: [Int32] = [0, 0]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
    guard let layer, unsafe socketpair(AF_UNIX, kind, 0, &numbers) == 0 else { fatalError("no sockets") }
    channel = ByteChannel(Descriptor(owning: numbers[0]), layer: layer)
    outlet = Descriptor(owning: numbers[1])
  }

  private static func pattern(_ offset: Int) -> UInt8 { UInt8(truncatingIfNeeded: offset &* 31 ^ offset >> 8) }

  mutating func send(_ count: Int) {
    guard isOpen, !hasFailed, !hasShutDown, count > 0 else { return }
    let bytes = (sentCount..<sentCount + count).map(Self.pattern)
    switch unsafe bytes.withUnsafeBytes({ unsafe channel.send($0) }) {
    case .moved(let count): sentCount += count
    case .wouldBlock: break
    case .failed: hasFailed = true
    }
  }

  mutating func shutDown() {
    guard isOpen, !hasFailed else { return }
    hasShutDown = true
    _ = channel.shutdownSending()
  }

  /// Continues the handshake, and receives what has arrived.
  mutating func continueAll() {
    if !isOpen, !hasFailed {
      switch channel.continueHandshake() {
      case .done: isOpen = true
      case .waiting: break
      case .failed:
        hasFailed = true
        _ = channel.shutdownSending()
      }
    }
    if isOpen { receive() }
    wire.collect(from: outlet)
  }

  private mutating func receive() {
    var room = [UInt8](repeating: 0, count: 1_000)
    repeat {
      guard !hasFailed, !hasSeenEnd else { return }
      switch unsafe room.withUnsafeMutableBytes({ unsafe channel.receive(into: $0) }) {
      case .moved(0): hasSeenEnd = true
      case .moved(let count):
        for index in 0..<count where room[index] != Self.pattern(receivedCount + index) {
          fatalError("byte \(receivedCount + index) is not what the peer has sent")
        }
        receivedCount += count
      case .wouldBlock: return
      case .failed: hasFailed = true
      }
    } while channel.holdsInput
  }

  func check(against peer: borrowing FuzzedEnd) {
    guard hasSeenEnd else { return }
    if !peer.hasShutDown { fatalError("an end was received that the peer has not announced") }
    if receivedCount < peer.sentCount { fatalError("an end was received before what the peer has sent") }
  }
}

/// Bytes under way.
private struct Wire {
  private var bytes: [UInt8] = []

  mutating func collect(from outlet: borrowing Descriptor) {
    var room = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = unsafe read(outlet.number, &room, room.count)
      guard count > 0 else { return }
      bytes += room[..<count]
    }
  }

  mutating func deliver(_ count: Int, to end: borrowing FuzzedEnd) {
    let piece = bytes.prefix(count)
    let count = unsafe piece.withUnsafeBytes {
      unsafe send(end.outlet.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
    if count > 0 { bytes.removeFirst(count) }
  }

  mutating func flip(at offset: Int) {
    guard !bytes.isEmpty else { return }
    bytes[offset % bytes.count] ^= 1 << (offset & 7)
  }

  mutating func drop(_ count: Int) { bytes.removeFirst(min(count, bytes.count)) }

  mutating func insert(_ inserted: [UInt8]) { bytes = inserted + bytes }

  func cut(_ end: borrowing FuzzedEnd) { _ = shutdown(end.outlet.number, Int32(SHUT_WR)) }
}
