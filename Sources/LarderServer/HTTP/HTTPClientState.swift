import Wire

/// What a connection keeps for a client that speaks HTTP: what its latest request was about, so that one like it needs no
/// preparation. Owned by one `Connection`, and used by its worker.
final class HTTPClientState {
  /// The name in the path of the store that is open; nil if none is.
  private var store: [UInt8]?
  /// The name by which the client knew the server when it opened the store.
  private var host: [UInt8] = []
  /// The value of `Authorization` that the client has its rights by; empty for none.
  private(set) var authorization: [UInt8] = []

  /// Whether the client knows that the body of its next request is awaited.
  var wasToldToContinue = false

  /// The decoded operations of the next request; nil for a request with one.
  private var batch: (Command, [UInt8])?

  var hasBatch: Bool { batch != nil }

  func keep(batch: (Command, [UInt8])) { self.batch = batch }

  func dropBatch() { batch = nil }

  func takeBatch() -> (Command, [UInt8])? { batch.take() }

  /// Notes which store a request has opened, by a name that the server has.
  func didOpenStore(of request: HTTPRequest, _ bytes: RawSpan) {
    store = bytes.extracting(request.route.store).toArray()
    host = bytes.extracting(request[.host] ?? 0..<0).toArray()
  }

  /// Notes by what the client has its rights.
  func didAuthorize(_ authorization: RawSpan) { self.authorization = authorization.toArray() }

  /// Whether a request is on the store that is open, by the same name of the server, with the rights that the connection
  /// has.
  func isServed(by request: HTTPRequest, _ bytes: RawSpan, _ session: ConsoleSession?, now: UInt64) -> Bool {
    guard let store, bytes.extracting(request.route.store).hasSameBytes(as: unsafe store.span.bytes) else {
      return false
    }
    return unsafe bytes.extracting(request[.host] ?? 0..<0).hasSameBytes(as: host.span.bytes)
      && hasAuthorization(of: request, bytes, session, now: now)
  }

  /// Whether the connection has the rights that a request has.
  /// - Parameter session: The session of a console that the connection has them by; nil for none.
  func hasAuthorization(of request: HTTPRequest, _ bytes: RawSpan, _ session: ConsoleSession?, now: UInt64) -> Bool {
    let (field, authorization) = (request[.authorization] ?? 0..<0, authorization)
    return unsafe session?.isOver(now: now) != true
      && bytes.extracting(field).hasSameBytes(as: authorization.span.bytes)
  }
}

extension Connection {
  var httpClient: HTTPClientState {
    guard let client = clientState as? HTTPClientState else { preconditionFailure("it is a client of HTTP") }
    return client
  }
}
