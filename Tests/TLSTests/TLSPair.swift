import Glibc
import Platform
import TLS
import TestSupport

/// Both ends of a TLS connection over a pair of sockets, which one thread drives in turns.
struct TLSPair: ~Copyable {
  let server: ByteChannel
  let client: ByteChannel

  /// How the handshakes have ended.
  struct Outcome: Equatable {
    var server: ChannelProgress
    var client: ChannelProgress
  }

  init(
    _ serverContext: TLSContext, _ clientContext: TLSContext, host: String = "localhost"
  ) throws(SystemError) {
    let ends = try SocketPair()
    server = ByteChannel(ends.first, layer: TLSLayer(accepting: serverContext))
    client = ByteChannel(ends.second, layer: TLSLayer(connectingTo: host, clientContext))
  }

  /// Continues both handshakes until they have ended, or nothing more happens.
  func shakeHands() -> Outcome {
    var outcome = Outcome(server: .waiting, client: .waiting)
    for _ in 0..<16 {
      if outcome.client == .waiting { outcome.client = client.continueHandshake() }
      if outcome.server == .waiting { outcome.server = server.continueHandshake() }
    }
    return outcome
  }

  /// Sends bytes from one end, and receives them at the other.
  static func move(
    _ bytes: [UInt8], from sender: borrowing ByteChannel, to receiver: borrowing ByteChannel, roomSize: Int = 32 << 10
  ) throws -> [UInt8] {
    var (sentCount, received) = (0, [UInt8]())
    var room = [UInt8](repeating: 0, count: roomSize)
    while received.count < bytes.count {
      if sentCount < bytes.count {
        switch unsafe bytes[sentCount...].withUnsafeBytes({ unsafe sender.send($0) }) {
        case .moved(let count): sentCount += count
        case .wouldBlock: break
        case .failed(let error): throw error
        }
      }
      repeat {
        switch unsafe room.withUnsafeMutableBytes({ unsafe receiver.receive(into: $0) }) {
        case .moved(0): return received
        case .moved(let count): received += room[..<count]
        case .wouldBlock: break
        case .failed(let error): throw error
        }
      } while receiver.holdsInput
    }
    return received
  }
}

extension ByteChannel {
  /// Receives once.
  func receiveOnce(_ roomSize: Int = 1 << 10) -> (transfer: ChannelTransfer, bytes: [UInt8]) {
    var room = [UInt8](repeating: 0, count: roomSize)
    let transfer = unsafe room.withUnsafeMutableBytes { unsafe receive(into: $0) }
    if case .moved(let count) = transfer { return (transfer, Array(room[..<count])) }
    return (transfer, [])
  }

  func sendAll(_ bytes: [UInt8]) -> ChannelTransfer { unsafe bytes.withUnsafeBytes { unsafe send($0) } }
}

/// Two connected sockets that never wait.
struct SocketPair: ~Copyable {
  let first: Descriptor
  let second: Descriptor

  init() throws(SystemError) {
    var numbers: [Int32] = [0, 0]
    guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &numbers) == 0 else {
      throw SystemError("socketpair")
    }
    first = Descriptor(owning: numbers[0])
    second = Descriptor(owning: numbers[1])
  }
}
