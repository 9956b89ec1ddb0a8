import Dispatch
import Glibc
import Platform

/// Serves `/metrics`, `/healthz` and `/readyz` over HTTP, on a thread of its own that no worker waits for.
///
/// Connections are limited in number, time and bytes; when there are too many, a new one replaces the oldest. The loop
/// runs until `stop`.
final class MetricsListener: Sendable {
  let address: Address
  private let wakeup: Wakeup
  private let ended = DispatchSemaphore(value: 0)

  static let maxConnections = 16
  /// How long a connection may take for its request and its response, in milliseconds.
  private static let timeout: UInt64 = 5_000
  /// How long no connection is accepted after descriptors have run out, in milliseconds.
  private static let pause: UInt64 = 100

  init(_ listener: consuming ListeningSocket, _ state: ServerState) throws(SystemError) {
    address = listener.address
    wakeup = try Wakeup()
    let listener = Lock<ListeningSocket?>(consume listener)
    DispatchQueue(label: "larder.metrics").async { [self] in
      // The socket is closed when the loop ends.
      if let listener = listener.withLock({ $0.take() }) { loop(listener, state) }
      ended.signal()
    }
  }

  /// Ends all connections and closes the socket. Call it once.
  func stop() {
    wakeup.signal()
    ended.wait()
  }

  private func loop(_ listener: consuming ListeningSocket, _ state: ServerState) {
    var connections: [MetricsConnection] = []
    var pausedUntil: UInt64 = 0
    while true {
      let now = monotonicMilliseconds()
      let accepts = now >= pausedUntil
      var polled = [pollfd(fd: wakeup.descriptor.number, events: Int16(POLLIN), revents: 0)]
      polled.append(pollfd(fd: accepts ? listener.descriptor.number : -1, events: Int16(POLLIN), revents: 0))
      polled += connections.map { pollfd(fd: $0.number, events: $0.events, revents: 0) }
      let deadline = (connections.map(\.deadline) + (pausedUntil > now ? [pausedUntil] : [])).min()
      _ = unsafe poll(&polled, nfds_t(polled.count), deadline.map { Int32(clamping: $0 > now ? $0 - now : 0) } ?? -1)
      if polled[0].revents != 0 { return }
      for (connection, ready) in zip(connections, polled.dropFirst(2)) where ready.revents != 0 {
        connection.advance(state)
      }
      let later = monotonicMilliseconds()
      connections.removeAll { $0.isDone || $0.deadline <= later }
      guard polled[1].revents != 0 else { continue }
      do {
        if let socket = try listener.accept() {
          // The oldest has had more time than a client that reads needs.
          if connections.count == Self.maxConnections { connections.removeFirst() }
          connections.append(MetricsConnection(socket, deadline: later + Self.timeout))
        }
      } catch {
        // There is no descriptor or no memory. Trying again at once would spin.
        pausedUntil = later + Self.pause
      }
    }
  }
}

/// One connection of the metrics listener. Owned by its loop.
private final class MetricsConnection {
  private let socket: Descriptor
  let deadline: UInt64
  private var exchange = HTTPExchange()
  /// The part of the response that has not been sent; nil if there is no response yet.
  private var output: ArraySlice<UInt8>?
  private(set) var isDone = false

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
    var room = [UInt8](repeating: 0, count: HTTPExchange.maxHeadSize)
    let transfer = unsafe room.withUnsafeMutableBytes { unsafe socket.receive(into: $0) }
    switch transfer {
    case .moved(0), .failed: isDone = true
    case .wouldBlock: break
    case .moved(let count):
      switch exchange.receive(room[..<count]) {
      case .incomplete: break
      case .refused(let status): output = HTTPResponse(status, line: status.rawValue).bytes[...]
      case .get(let path): output = state.page(path).bytes[...]
      case .head(let path): output = state.page(path).head[...]
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
      isDone = true
    case .wouldBlock: break
    case .failed: isDone = true
    }
  }
}

extension ServerState {
  /// The text of the page `/readyz` of a server that is ready. It names the stores that are not served, and says if a
  /// database of replicated stores is unavailable, or a certificate expires soon.
  private var readyLine: String {
    let damaged = stores.damagedNames
    var line = "ok"
    if !damaged.isEmpty { line += ", without damaged stores: \(damaged.map(\.text).joined(separator: ", "))" }
    if let failure = cluster.withLock({ $0.failure }) { line += ", without replicated stores: \(failure)" }
    let days = accessControl.policy.certificates.secondsToExpiry(at: Int64(time(nil))).map { $0 / 86_400 }
    if let days, days <= CertificateStatus.daysOfWarning { line += ", a certificate expires in \(days) days" }
    return line
  }

  /// The type of the page `/metrics`.
  static var metricsType: StaticString { "text/plain; version=0.0.4; charset=utf-8" }

  /// Whether the server is ready, and the text of the page `/readyz`.
  var readinessReport: (isReady: Bool, line: String) {
    switch readiness {
    case .starting: (false, "the server is opening its stores")
    case .ready: (true, readyLine)
    case .stopping: (false, "the server is stopping")
    }
  }

  /// Returns the response to a request for a page.
  fileprivate func page(_ path: String) -> HTTPResponse {
    switch path {
    case "/metrics": return HTTPResponse(.ok, type: "\(Self.metricsType)", metrics())
    case "/healthz": return HTTPResponse(.ok, line: "ok")
    case "/readyz":
      let report = readinessReport
      return HTTPResponse(report.isReady ? .ok : .unavailable, line: report.line)
    default: return HTTPResponse(.notFound, line: "the pages are /metrics, /healthz and /readyz")
    }
  }
}
