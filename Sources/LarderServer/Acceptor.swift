import Dispatch
import Platform
import Wire

/// Takes connections off one listening socket and hands them to the workers in turn.
///
/// Safe because what changes is confined to `queue`, which all acceptors share.
final class Acceptor: @unchecked Sendable {
  let listener: Listener
  private let number: Int
  private var socket: ListeningSocket?
  private let closed = DispatchSemaphore(value: 0)
  private let source: any DispatchSourceRead
  private static let queue = DispatchQueue(label: "larder.acceptor")
  private let server: ServerState
  private let workers: [Worker]
  private var next = 0

  /// How long no connection is taken once descriptors have run out. The waiting ones stay in the kernel's queue.
  private static let pause = DispatchTimeInterval.milliseconds(100)

  /// - Parameters:
  ///   - number: of the socket among the server's.
  ///   - name: what the service manager calls it.
  init(
    _ socket: consuming ListeningSocket, number: Int, name: String = "", server: ServerState, workers: [Worker]
  ) {
    source = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor.number, queue: Self.queue)
    listener = Listener(name: name, address: socket.address)
    self.number = number
    self.socket = consume socket
    self.server = server
    self.workers = workers
    source.setEventHandler { [unowned self] in accept() }
    // The socket may only be closed once Dispatch watches it no more. Until then the source keeps the acceptor alive.
    source.setCancelHandler { [self] in
      self.socket = nil
      closed.signal()
    }
  }

  /// Begins to take connections.
  func start() {
    source.activate()
  }

  /// Takes no more connections, and returns when the socket is closed and its file removed. Once.
  func stop() {
    source.cancel()
    // One that was never started would hear nothing of it.
    source.activate()
    closed.wait()
  }

  /// Has the thread of all acceptors answer when it comes to it.
  static func probe(_ answer: @escaping @Sendable () -> Void) {
    queue.async(execute: answer)
  }

  private func accept() {
    // Bounded, so that a stop gets its turn.
    for _ in 0..<256 {
      do throws(SystemError) {
        guard let socket = try socket?.accept() else { return }
        take(socket)
      } catch {
        // No descriptor or no memory: trying again at once would spin.
        source.suspend()
        Self.queue.asyncAfter(deadline: .now() + Self.pause) { [self] in source.resume() }
        return
      }
    }
  }

  private func take(_ socket: consuming Descriptor) {
    server.connectionsAccepted.add(1, ordering: .relaxed)
    let limit = server.limits.connections
    guard server.connections.add(1, ordering: .relaxed).newValue <= limit else {
      server.connections.subtract(1, ordering: .relaxed)
      server.connectionsRefused.add(1, ordering: .relaxed)
      var notice = ByteBuffer()
      notice.appendError(
        .tooManyConnections, id: 0,
        message: "the server has its \(limit) connections; try again later")
      _ = unsafe socket.send(notice.bytes)
      socket.shutdownSending()
      return
    }
    workers[next].adopt(socket, from: number)
    next = (next + 1) % workers.count
  }
}
