import Dispatch
import Platform
import Wire

/// Accepts the connections of one listening socket, and hands them to the workers in rotation.
///
/// Safe because everything that changes is used only on `queue`, which all acceptors share.
final class Acceptor: @unchecked Sendable {
  let listener: Listener
  private let number: Int
  private let served: ListenerProtocol
  private var socket: ListeningSocket?
  private let closed = DispatchSemaphore(value: 0)
  private let source: any DispatchSourceRead
  private let server: ServerState
  private let workers: [Worker]
  /// Completes the handshakes of its connections; nil if they have none.
  private let handshaker: Handshaker?
  private var nextWorker = 0

  private static let queue = DispatchQueue(label: "larder.acceptor")
  /// How long no connection is accepted after descriptors have run out. Clients wait in the kernel's queue.
  private static let pause = DispatchTimeInterval.milliseconds(100)
  /// The number of connections that are accepted in a row, so that `stop` need not wait long.
  private static let maxAcceptedInARow = 256

  /// - Parameters:
  ///   - number: the number of the listener among the server's.
  ///   - served: the protocol that its clients speak.
  ///   - handshaker: completes the handshakes of its connections, if these have any.
  init(
    _ socket: consuming ListeningSocket, number: Int, _ listener: Listener, _ served: ListenerProtocol,
    server: ServerState, workers: [Worker], handshaker: Handshaker?
  ) {
    source = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor.number, queue: Self.queue)
    self.listener = listener
    self.number = number
    self.served = served
    self.socket = consume socket
    self.server = server
    self.workers = workers
    self.handshaker = served.hasLayer ? handshaker : nil
    source.setEventHandler { [unowned self] in accept() }
    // The socket must not be closed while Dispatch monitors it. Until it stops, the source keeps the acceptor alive.
    source.setCancelHandler { [self] in
      self.socket = nil
      closed.signal()
    }
  }

  /// Begins to accept connections.
  func start() {
    source.activate()
  }

  /// Stops accepting connections. Returns when the socket is closed and its file removed. Call it once.
  func stop() {
    source.cancel()
    // A source that was never activated would not call its cancel handler.
    source.activate()
    closed.wait()
  }

  /// Makes the thread of all acceptors call `respond` after what it is doing.
  static func probe(_ respond: @escaping @Sendable () -> Void) {
    queue.async(execute: respond)
  }

  private func accept() {
    for _ in 0..<Self.maxAcceptedInARow {
      do throws(SystemError) {
        guard let socket = try socket?.accept() else { return }
        hand(socket)
      } catch {
        // There is no descriptor or no memory. Trying again at once would spin.
        source.suspend()
        Self.queue.asyncAfter(deadline: .now() + Self.pause) { [self] in source.resume() }
        return
      }
    }
  }

  /// Hands a connection to the next worker, or refuses it if there are too many.
  private func hand(_ socket: consuming Descriptor) {
    let limits = server.limits
    let origin = Socket.peer(of: socket).origin
    if let refusal = server.connectionCount.add(from: origin, limits) {
      // A client whose channel has a layer would not understand the notice.
      guard !served.hasLayer else { return }
      var notice = ByteBuffer()
      let reason =
        switch refusal {
        case .tooMany: "the server has reached its limit of \(limits.connections) connections; try again later"
        case .tooManyOfOrigin:
          "this user or host has reached its limit of \(limits.connectionsOfClient) connections "
            + "(limits.client-connections); close some, or try again later"
        }
      let failure = CommandFailure(.tooManyConnections, reason)
      served.session.append(failure, to: nil, into: &notice)
      _ = unsafe socket.send(notice.bytes)
      socket.shutdownSending()
      return
    }
    let worker = workers[nextWorker]
    nextWorker = (nextWorker + 1) % workers.count
    guard let channel = served.makeChannel(over: socket) else { return server.connectionCount.remove(from: origin) }
    guard let handshaker else { return worker.adopt(channel, from: number, served.session) }
    handshaker.begin(channel, from: number) { [number, served] channel in
      worker.adopt(channel, from: number, served.session)
    }
  }
}
