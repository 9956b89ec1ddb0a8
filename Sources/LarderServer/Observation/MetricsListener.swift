import Dispatch
import Glibc
import Platform

/// Serves `/metrics`, `/healthz` and `/readyz` over HTTP, on a queue of its own that no worker waits for.
///
/// Connections are limited in number, time and bytes; one more takes the place of the oldest. `loop` runs until `stop`.
final class MetricsListener: Sendable {
  let address: Address
  private let wakeup: Wakeup
  private let ended = DispatchSemaphore(value: 0)

  static let maxConnections = 16
  /// What a connection has for its request and its answer, in milliseconds.
  static let patience: UInt64 = 5_000

  init(_ listener: consuming ListeningSocket, _ state: ServerState) throws(SystemError) {
    address = listener.address
    wakeup = try Wakeup()
    let listener = Lock<ListeningSocket?>(consume listener)
    DispatchQueue(label: "larder.metrics").async { [self] in
      // The socket goes with the loop.
      if let listener = listener.withLock({ $0.take() }) { loop(listener, state) }
      ended.signal()
    }
  }

  /// Ends all connections and closes the socket. Once.
  func stop() {
    wakeup.signal()
    ended.wait()
  }

  private func loop(_ listener: consuming ListeningSocket, _ state: ServerState) {
    var connections: [MetricsConnection] = []
    var restUntil: UInt64 = 0
    while true {
      let now = monotonicMilliseconds()
      let accepts = now >= restUntil
      var watched = [pollfd(fd: wakeup.descriptor.number, events: Int16(POLLIN), revents: 0)]
      watched.append(pollfd(fd: accepts ? listener.descriptor.number : -1, events: Int16(POLLIN), revents: 0))
      watched += connections.map { pollfd(fd: $0.number, events: $0.events, revents: 0) }
      let due = (connections.map(\.deadline) + (restUntil > now ? [restUntil] : [])).min()
      _ = unsafe poll(&watched, nfds_t(watched.count), due.map { Int32(clamping: $0 > now ? $0 - now : 0) } ?? -1)
      if watched[0].revents != 0 { return }
      for (connection, ready) in zip(connections, watched.dropFirst(2)) where ready.revents != 0 {
        connection.advance(state)
      }
      let later = monotonicMilliseconds()
      connections.removeAll { $0.isOver || $0.deadline <= later }
      guard watched[1].revents != 0 else { continue }
      do {
        if let socket = try listener.accept() {
          // It has had more time than any that means to read needs.
          if connections.count == Self.maxConnections { connections.removeFirst() }
          connections.append(MetricsConnection(socket, deadline: later + Self.patience))
        }
      } catch {
        // No descriptor or no memory: trying again at once would spin.
        restUntil = later + 100
      }
    }
  }
}

/// One connection of the metrics listener. Belongs to its loop.
private final class MetricsConnection {
  private let socket: Descriptor
  let deadline: UInt64
  private var exchange = HTTPExchange()
  /// The answer, once there is one, as far as it is not sent.
  private var output: ArraySlice<UInt8>?
  private(set) var isOver = false

  init(_ socket: consuming Descriptor, deadline: UInt64) {
    self.socket = socket
    self.deadline = deadline
  }

  var number: Int32 { socket.number }
  var events: Int16 { Int16(output == nil ? POLLIN : POLLOUT) }

  /// Does what can be done without waiting.
  func advance(_ state: ServerState) {
    if output == nil { receive(state) }
    if output != nil { send() }
  }

  private func receive(_ state: ServerState) {
    var room = [UInt8](repeating: 0, count: HTTPExchange.longestHead)
    let transfer = unsafe room.withUnsafeMutableBytes { unsafe socket.receive(into: $0) }
    switch transfer {
    case .moved(0), .failed: isOver = true
    case .wouldBlock: break
    case .moved(let count):
      switch exchange.receive(room[..<count]) {
      case .incomplete: break
      case .refused(let status): output = HTTPExchange.answer(status, Array("\(status.rawValue)\n".utf8))[...]
      case .get(let path): output = state.page(path)[...]
      }
    }
  }

  private func send() {
    guard let rest = output else { return }
    let transfer = unsafe rest.withUnsafeBytes { unsafe socket.send($0) }
    switch transfer {
    case .moved(let count):
      output = rest.dropFirst(count)
      guard output?.isEmpty == true else { return }
      socket.shutdownSending()
      isOver = true
    case .wouldBlock: break
    case .failed: isOver = true
    }
  }
}

extension ServerState {
  /// The answer to a request for a page.
  fileprivate func page(_ path: String) -> [UInt8] {
    func answer(_ status: HTTPExchange.Status, _ text: String) -> [UInt8] {
      HTTPExchange.answer(status, Array("\(text)\n".utf8))
    }
    switch path {
    case "/metrics": return HTTPExchange.answer(.ok, type: "text/plain; version=0.0.4; charset=utf-8", metrics())
    case "/healthz": return answer(.ok, "ok")
    case "/readyz":
      switch readiness.load(ordering: .acquiring) {
      case .starting: return answer(.unavailable, "stores are being opened")
      case .ready: return answer(.ok, "ok")
      case .stopping: return answer(.unavailable, "the server stops")
      }
    default: return answer(.notFound, "there are /metrics, /healthz and /readyz")
    }
  }
}
