import Dispatch
import Glibc
import Platform
import Wire

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
  private var input: [UInt8] = []
  /// The part of the response that has not been sent.
  private var output = ByteBuffer()
  private(set) var isDone = false

  init(_ socket: consuming Descriptor, deadline: UInt64) {
    self.socket = socket
    self.deadline = deadline
  }

  var number: Int32 { socket.number }
  var events: Int16 { Int16(output.isEmpty ? POLLIN : POLLOUT) }

  /// Does what can be done without waiting.
  func advance(_ state: ServerState) {
    if output.isEmpty { receive(state) }
    if !output.isEmpty { send() }
  }

  private func receive(_ state: ServerState) {
    var room = [UInt8](repeating: 0, count: HTTPRequest.maxHeadSize)
    let transfer = unsafe room.withUnsafeMutableBytes { unsafe socket.receive(into: $0) }
    switch transfer {
    case .moved(0), .failed: isDone = true
    case .wouldBlock: break
    case .moved(let count):
      input += room[..<count]
      let input = input
      switch unsafe HTTPRequest.scan(input.span.bytes, at: 0, maxSize: HTTPRequest.maxHeadSize) {
      case .partial: break
      case .invalid(let failure): output.appendProblem(failure, HTTPStatus(failure.code), isLast: true)
      case .request(let request): reply(to: request, state)
      }
    }
  }

  /// Makes the only response of the connection.
  private func reply(to request: HTTPRequest, _ state: ServerState) {
    let isHead = request.method == .head
    if !request.route.isPage {
      let failure = CommandFailure(.notFound, "the pages are /metrics, /healthz and /readyz")
      output.appendProblem(failure, .notFound, isHead: isHead, isLast: true)
    } else if !request.method.isSafe {
      let failure = CommandFailure(.unknownOperation, "the methods of this resource are \(request.route.allowed)")
      output.appendProblem(
        failure, .methodNotAllowed, isLast: true, field: (name: "Allow", value: request.route.allowed))
    } else {
      state.appendPage(request, isLast: true, into: &output)
    }
  }

  private func send() {
    switch unsafe socket.send(output.bytes) {
    case .moved(let count):
      output.consume(count)
      guard output.isEmpty else { return }
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
    let stopped = stores.stoppedNames
    if !stopped.isEmpty {
      line += ", without stores whose names are taken in a database: \(stopped.map(\.text).joined(separator: ", "))"
    }
    if let failure = cluster.withLock({ $0.failure }) { line += ", without replicated stores: \(failure)" }
    let days = accessControl.policy.certificates.secondsToExpiry(at: Int64(time(nil))).map { $0 / 86_400 }
    if let days, days <= CertificateStatus.daysOfWarning { line += ", a certificate expires in \(days) days" }
    return line
  }

  /// Whether the server is ready, and the text of the page `/readyz`.
  private var readinessReport: (isReady: Bool, line: String) {
    switch readiness {
    case .starting: (false, "the server is opening its stores")
    case .ready:
      stores.missingKnowledge.map { (false, "the server can't serve all stores yet: \($0)") } ?? (true, readyLine)
    case .stopping: (false, "the server is stopping")
    }
  }

  /// Appends the response to a request for a page: `/metrics`, `/healthz` or `/readyz`.
  /// - Parameter isLast: Whether the connection ends with it.
  func appendPage(_ request: HTTPRequest, isLast: Bool = false, into bytes: inout ByteBuffer) {
    let isHead = request.method == .head
    if request.route.resource == .metrics {
      let type: StaticString = "text/plain; version=0.0.4; charset=utf-8"
      return bytes.appendResponse(.ok, metrics(), type: type, isHead: isHead, isLast: isLast)
    }
    let report = request.route.resource == .health ? (isReady: true, line: "ok") : readinessReport
    bytes.appendResponse(
      report.isReady ? .ok : .unavailable, Array("\(report.line)\n".utf8), type: "text/plain; charset=utf-8",
      isHead: isHead, isLast: isLast)
  }
}
