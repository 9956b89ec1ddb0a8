import Documents
import Platform
import Storage
import Tokens
import Wire

/// All requests except those on the entries of an open store, and their access control.
extension HTTPCodec {
  static func execute(
    _ request: HTTPRequest, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    connection.httpClient.wasToldToContinue = false
    connection.httpClient.dropBatch()
    let isHead = request.method == .head
    if let refusal = HTTPGate.refusalOfHost(of: request, bytes, executor.server.httpHosts) {
      return refuse(refusal, isHead: isHead, into: &replies)
    }
    let route = request.route
    let asset = route.resource == .asset ? executor.server.httpAssets[bytes.extracting(route.rest).toString()] : nil
    guard route.resource != .unknown, route.resource != .asset || asset != nil else {
      return refuse(
        CommandFailure(.notFound, "there is nothing at this path"), .notFound, isHead: isHead, into: &replies)
    }
    guard route.has(request.method) else {
      let failure = CommandFailure(.unknownOperation, "the methods of this resource are \(route.allowed)")
      return refuse(failure, .methodNotAllowed, isHead: isHead, field: ("Allow", route.allowed), into: &replies)
    }
    if let refusal = HTTPGate.refusalOfUnsupported(of: request, bytes) {
      return refuse(refusal, isHead: isHead, into: &replies)
    }
    if let asset {
      // A link on another site may lead to the console: its files have no secrets, and don't appear in other pages.
      do throws(CommandFailure) {
        // Browsers would take it to be about every port of the host.
        let isSecure = !connection.channel.isPlain && !request.namesPort(bytes)
        try asset.appendResponse(to: request, bytes, isSecure: isSecure, into: &replies.bytes)
        return .done
      } catch { return refuse(error, HTTPStatus(error.code), isHead: isHead, into: &replies) }
    }
    if let refusal = HTTPGate.refusalOfSite(of: request, bytes) {
      return refuse(refusal, isHead: isHead, into: &replies)
    }
    guard request.method != .post || request.hasJSON(bytes) else {
      let failure = CommandFailure(.illegalArgument, "the body must be JSON, with 'Content-Type: application/json'")
      return refuse(failure, .unsupportedMediaType, into: &replies)
    }
    if route.isPage, route.resource != .metrics {
      executor.server.appendPage(request, into: &replies.bytes)
      return .done
    }
    do throws(CommandFailure) {
      if route.resource == .session, request.method == .post {
        return try openConsole(request, bytes, of: &connection, on: &executor, into: &replies)
      }
      if let refusal = authorize(request, bytes, &connection, on: &executor) {
        return refuse(refusal, isHead: isHead, into: &replies)
      }
      return try executeAuthorized(request, bytes, of: &connection, on: &executor, into: &replies)
    } catch { return refuse(error, HTTPStatus(error.code), isHead: isHead, into: &replies) }
  }

  private static func refuse(
    _ failure: CommandFailure, _ status: HTTPStatus, isHead: Bool = false,
    field: (name: StaticString, value: String)? = nil, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    replies.bytes.appendProblem(failure, status, isHead: isHead, field: field)
    return .replied(failure: failure.code)
  }

  private static func refuse(
    _ refusal: HTTPGate.Refusal, isHead: Bool = false, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    refuse(refusal.failure, refusal.status, isHead: isHead, field: refusal.field, into: &replies)
  }

  /// Gives a connection the rights that its next request has.
  /// - Returns: Why it has none; nil if it may have some.
  private static func authorize(
    _ request: HTTPRequest, _ bytes: RawSpan, _ connection: inout Connection, on executor: inout Executor
  ) -> HTTPGate.Refusal? {
    let accessControl = executor.server.accessControl
    let client = connection.httpClient
    if !client.hasAuthorization(of: request, bytes, connection.consoleSession, now: executor.now) {
      var (token, session): (TokenDigest?, ConsoleSession?)
      if request[.authorization] != nil {
        guard let text = request.bearer(bytes) else {
          return .unauthorized("a client proves who it is with 'Authorization: Bearer TOKEN'")
        }
        session = accessControl.consoleSession(text, of: connection)
        if session == nil {
          do throws(AuthenticationError) {
            token = try accessControl.authenticate(text, of: connection)
          } catch { return HTTPGate.Refusal(error) }
        }
      }
      (connection.accessToken, connection.consoleSession) = (token, session)
      client.didAuthorize(bytes.extracting(request[.authorization] ?? 0..<0))
      connection.grants = accessControl.grants(for: connection)
      connection.stores.permit(connection.grants)
      guard connection.countPrincipal(on: executor.server, executor.limits) else {
        return .unauthorized(.tooManyOfPrincipal)
      }
      accessControl.didAdmit(connection)
    }
    guard connection.grants.isNothing else { return nil }
    return .unauthorized(accessControl.refuse(AccessControl.useServer, to: connection))
  }

  /// Gives a browser the token of the session that a link is for.
  private static func openConsole(
    _ request: HTTPRequest, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> RequestEnd {
    guard let link = try HTTPBody(request, bytes, names: ["link"]).string("link") else {
      throw CommandFailure(.illegalArgument, "the body has a 'link', which 'larder console' prints")
    }
    let token: AccessToken
    do throws(AuthenticationError) {
      token = try executor.server.accessControl.openConsole(link, of: connection)
    } catch {
      let message = "this link was used, or is too old: make a new one"
      return refuse(HTTPGate.Refusal(error, invalid: message), into: &replies)
    }
    return append(
      .object([
        "token": .string(token.text), "expiresInMilliseconds": .integer(Int64(ConsoleSessions.lifetime)),
      ]), request, into: &replies)
  }

  private static func executeAuthorized(
    _ request: HTTPRequest, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> RequestEnd {
    guard let operation = request.route.operation(request.method) else {
      return appendReport(request, bytes, &connection, on: &executor, into: &replies)
    }
    switch operation.descriptor.target {
    case .entries:
      let store = try openStore(request, bytes, of: &connection, on: &executor)
      guard let opened = connection.stores[1], permits(request, bytes, on: opened) else {
        return HTTPSession().refuse(
          operation.action(on: "store \(store.name)"), request, of: &connection, on: &executor, into: &replies)
      }
      // Many operations are decoded before the store is locked.
      if request.route.isBatch { connection.httpClient.keep(batch: try request.command(bytes)) }
      // Now it is found to be on an open store.
      return .deferred
    case .namedStore:
      return try executeOnStores(operation, request, bytes, of: &connection, on: &executor, into: &replies)
    case .documents,
      .storeOrServer where request.route.resource == .store:
      let store = try openStore(request, bytes, of: &connection, on: &executor)
      guard connection.grants.rights(to: store.name).permit(operation.descriptor) else {
        return HTTPSession().refuse(
          operation.action(on: "store \(store.name)"), request, of: &connection, on: &executor, into: &replies)
      }
      if operation == .stats {
        return try appendFigures(of: store, request, &connection, on: &executor, into: &replies)
      }
      return try executeOnDocuments(operation, request, bytes, of: &connection, store, on: &executor, into: &replies)
    default:
      guard connection.grants.onAll >= operation.descriptor.right else {
        return HTTPSession().refuse(
          "ask the server for \(operation.name)", request, of: &connection, on: &executor, into: &replies)
      }
      return appendReport(request, bytes, &connection, on: &executor, into: &replies)
    }
  }

  private static func permits(_ request: HTTPRequest, _ bytes: RawSpan, on opened: OpenStores.Opened) -> Bool {
    opened.permitted.contains(request.operation)
      || opened.permittedOnKeys.contains(request.operation) && isPermitted(request, bytes, by: opened.rights)
  }

  // MARK: Stores

  private static func storeName(
    _ request: HTTPRequest, _ bytes: RawSpan
  ) throws(CommandFailure) -> StoreName {
    let name = try HTTPParameters.decode(request.route.store, of: bytes)
    do throws(StorageError) { return try StoreName(String(decoding: name, as: UTF8.self)) } catch {
      throw CommandFailure(error)
    }
  }

  /// Opens the store in the path of a request, unless it is open.
  private static func openStore(
    _ request: HTTPRequest, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor
  ) throws(CommandFailure) -> Store {
    if let opened = connection.stores[1],
      connection.httpClient.isServed(by: request, bytes, connection.consoleSession, now: executor.now),
      !opened.store.access({ $0.isDropped })
    {
      return opened.store
    }
    let name = try storeName(request, bytes)
    guard connection.grants.rights(to: name).toAny >= .read else {
      let action = Operation.storeOpen.action(on: "store \(name)")
      throw CommandFailure(.notPermitted, executor.server.accessControl.refuse(action, to: connection))
    }
    if connection.stores[1] != nil { connection.stores.close(1) }
    _ = try executor.openStore(name, of: &connection.stores, connection.grants)
    guard let opened = connection.stores[1] else { preconditionFailure("the first store has the first handle") }
    connection.httpClient.didOpenStore(of: request, bytes)
    return opened.store
  }

  private static func executeOnStores(
    _ operation: Operation, _ request: HTTPRequest, _ bytes: RawSpan, of connection: inout Connection,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> RequestEnd {
    let name = try storeName(request, bytes)
    guard connection.grants.rights(to: name).permit(operation.descriptor) else {
      return HTTPSession().refuse(
        operation.action(on: "store \(name)"), request, of: &connection, on: &executor, into: &replies)
    }
    guard operation == .storeCreate else {
      return HTTPSession().change(.drop(name), request, of: &connection, store: name.text, on: &executor)
    }
    guard request.hasJSON(bytes), let engine = try HTTPBody(request, bytes, names: ["engine"]).string("engine") else {
      throw CommandFailure(
        .illegalArgument,
        "the body names the engine, as in {\"engine\":\"memory\"}, with 'Content-Type: application/json'")
    }
    do throws(StorageError) {
      let specification = try executor.server.stores.specification(engine)
      return HTTPSession().change(
        .create(name, specification), request, of: &connection, store: name.text, on: &executor)
    } catch { throw CommandFailure(error) }
  }

  // MARK: The tree of keys

  /// Appends the keys below a prefix, with those that go on behind a delimiter taken together and counted.
  static func appendTree(
    _ request: HTTPRequest, _ bytes: RawSpan, _ map: inout EntryMap, executor: inout Executor,
    into replies: inout ReplyBuffer
  ) throws(Detour) -> CodecExecution {
    let part: KeyTreeRequest
    do throws(CommandFailure) { part = try KeyTreeRequest(request, bytes) } catch { throw .failure(error) }
    let tree: KeyTree
    do throws(StorageError) {
      tree = try map.keyTree(part, now: executor.now)
    } catch { throw Detour(error, revealing: map.revisions.last) }
    replies.bytes.appendResponse(json: tree.json, isHead: request.method == .head)
    return CodecExecution(
      failure: nil, shownRevision: max(map.revisions.lastRemoval, map.revisions.lastInsertion))
  }
}

extension HTTPCodec {
  static func replyToBeginning(
    _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer
  ) {
    let client = connection.httpClient
    guard let request = HTTPRequest.head(of: bytes) else { return }
    if connection.isStranger, refuseBody(of: request, bytes, of: &connection, on: &executor, into: &replies) { return }
    guard !client.wasToldToContinue, let field = request[.expect],
      bytes.extracting(field).isText("100-continue", ignoringCase: true)
    else { return }
    client.wasToldToContinue = true
    replies.bytes.append(text: "HTTP/1.1 100 Continue\r\n\r\n")
  }

  /// The maximum size of the body of a request whose client has no rights, in bytes.
  private static let maxBodySizeOfStrangers = 4 << 10

  /// Checks the token of a client without rights before the body of its request is read. Without a valid one, ends the
  /// connection, as does a large body of a request that needs none.
  /// - Returns: Whether the connection ends.
  private static func refuseBody(
    of request: HTTPRequest, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> Bool {
    let refusal: HTTPGate.Refusal
    if needsRights(request, bytes, executor.server.httpHosts),
      let cause = authorize(request, bytes, &connection, on: &executor)
    {
      refusal = cause
    } else if connection.isStranger, request.body.count > maxBodySizeOfStrangers {
      let failure = CommandFailure(.frameLength, "without a token, a body has at most \(maxBodySizeOfStrangers) bytes")
      refusal = HTTPGate.Refusal(failure: failure, status: .contentTooLarge)
    } else {
      return false
    }
    replies.bytes.appendProblem(refusal.failure, refusal.status, isLast: true, field: refusal.field)
    executor.record(request.operation, refusal.failure.code)
    connection.phase = .closing
    return true
  }

  /// Whether a request is for what takes rights, and isn't refused for another reason.
  private static func needsRights(_ request: HTTPRequest, _ bytes: RawSpan, _ hosts: HTTPHosts) -> Bool {
    let route = request.route
    switch route.resource {
    case .unknown, .asset, .health, .readiness: return false
    case .session where request.method == .post: return false
    default:
      return route.operation(request.method) != .hello && HTTPGate.refusalOfHost(of: request, bytes, hosts) == nil
        && HTTPGate.refusalOfSite(of: request, bytes) == nil
    }
  }
}

extension ServerState {
  /// Returns where the console is, and a link that gives a browser the rights of a connection, as JSON:
  /// `Protocol/wire.md` §6.14.
  func consoleLink(for connection: borrowing Connection) throws(CommandFailure) -> JSONValue {
    let urls = httpHosts.urls
    guard !urls.isEmpty else {
      throw CommandFailure(.illegalArgument, "this server has no console; it needs --listen http:127.0.0.1:7480")
    }
    var json: JSONValue = ["urls": .array(urls.map { .string($0) })]
    if let link = accessControl.makeConsoleLink(for: connection) {
      json["link"] = .string(link.text)
      json["milliseconds"] = .integer(Int64(ConsoleSessions.linkLifetime))
    }
    return json
  }
}

extension HTTPGate.Refusal {
  fileprivate static func unauthorized(_ message: String) -> Self {
    unauthorized(CommandFailure(.notPermitted, message))
  }

  fileprivate static func unauthorized(_ failure: CommandFailure) -> Self {
    Self(failure: failure, status: .unauthorized, field: ("WWW-Authenticate", "Bearer realm=\"larder\""))
  }

  /// - Parameter invalid: The message about what was shown, if that is no token.
  fileprivate init(_ error: AuthenticationError, invalid: String? = nil) {
    if let seconds = error.retryAfter {
      self.init(
        failure: CommandFailure(.notPermitted, error.message), status: .tooManyRequests,
        field: ("Retry-After", "\(seconds)"))
    } else {
      self = .unauthorized(invalid ?? error.message)
    }
  }
}

extension HTTPRequest {
  /// The token that the client proves who it is by; nil for none.
  func bearer(_ bytes: RawSpan) -> String? {
    guard let field = self[.authorization] else { return nil }
    let text = bytes.extracting(field).toString()
    return text.lowercased().hasPrefix("bearer ") ? String(text.dropFirst("bearer ".count)) : nil
  }

  /// Whether the client knows the server by a port, too.
  fileprivate func namesPort(_ bytes: RawSpan) -> Bool {
    self[.host].map { host in host.contains { bytes.byte($0) == UInt8(ascii: ":") } } ?? false
  }

  /// Whether the body is said to be JSON.
  func hasJSON(_ bytes: RawSpan) -> Bool {
    guard let field = self[.contentType] else { return false }
    let type = bytes.extracting(field).toString().lowercased()
    return type == "application/json" || type.hasPrefix("application/json;")
  }
}
