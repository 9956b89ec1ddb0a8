import Platform
import Wire

/// Refuses what a browser may send in somebody else's name: requests for a name that isn't this server's, as after DNS
/// rebinding, and changes that another site has asked for. Refuses, too, what would mean something else if a part of the
/// request was ignored.
enum HTTPGate {
  struct Refusal {
    let failure: CommandFailure
    let status: HTTPStatus
    /// A field that the response has, too.
    var field: (name: StaticString, value: String)?
  }

  /// Returns why a request for a name is refused; nil if the server has the name.
  static func refusalOfHost(of request: HTTPRequest, _ bytes: RawSpan, _ hosts: HTTPHosts) -> Refusal? {
    // Only HTTP/1.0, which no browser speaks, can do without.
    guard let host = request[.host] else { return nil }
    if hosts.contains(bytes.extracting(host)) { return nil }
    return Refusal(
      failure: CommandFailure(.notPermitted, "this server is not known by the name in 'Host' (http.hosts)"),
      status: .misdirected)
  }

  /// Returns why a request is refused that another site may have asked for; nil if none has.
  static func refusalOfSite(of request: HTTPRequest, _ bytes: RawSpan) -> Refusal? {
    let host = request[.host] ?? 0..<0
    if let site = request[.fetchSite] {
      let site = bytes.extracting(site)
      guard site.isText("same-origin") || site.isText("none") else { return forbidden("another site has asked for it") }
    } else if let origin = request[.origin], !isOrigin(bytes.extracting(origin), bytes.extracting(host)) {
      return forbidden("another site has asked for it")
    }
    guard !request.method.isSafe else { return nil }
    guard let field = request[.larder], bytes.extracting(field).isText("1") else {
      return forbidden("a request that changes something needs the field 'X-Larder: 1'")
    }
    return nil
  }

  /// Returns why a request is refused whose fields or parameters this server doesn't know for the resource, although they
  /// change what the request means; nil if there are none.
  static func refusalOfUnsupported(of request: HTTPRequest, _ bytes: RawSpan) -> Refusal? {
    let (route, method) = (request.route, request.method)
    if route.hasQuery, !route.takesParameters(method) {
      let advice = route.resource == .entry ? "; in a key, '?' is %3F" : ""
      return unsupported("this resource has no parameters" + advice)
    }
    if let coding = request[.contentEncoding], !bytes.extracting(coding).isText("identity", ignoringCase: true) {
      return Refusal(
        failure: CommandFailure(.illegalArgument, "send the body without a Content-Encoding"),
        status: .unsupportedMediaType, field: ("Accept-Encoding", "identity"))
    }
    if request[.contentRange] != nil { return unsupported("send the whole value, without Content-Range") }
    if request[.range] != nil, !method.isSafe { return unsupported("only GET has a Range") }
    if request[.ifUnmodifiedSince] != nil {
      return unsupported("nothing has a date of modification: use If-Match with an entity tag")
    }
    guard route.resource != .entry, request[.ifMatch] != nil || !method.isSafe && request[.ifNoneMatch] != nil else {
      return nil
    }
    return unsupported("only entries have conditions")
  }

  private static func unsupported(_ message: String) -> Refusal {
    Refusal(failure: CommandFailure(.illegalArgument, message), status: .badRequest)
  }

  private static func forbidden(_ message: String) -> Refusal {
    Refusal(failure: CommandFailure(.notPermitted, message), status: .forbidden)
  }

  /// Whether an origin is that of pages from a host.
  private static func isOrigin(_ origin: RawSpan, _ host: RawSpan) -> Bool {
    let text = origin.toString()
    let host = host.toString()
    return text == "http://\(host)" || text == "https://\(host)"
  }
}

/// The names by which clients may know a server, with their ports.
final class HTTPHosts: Sendable {
  private let names = Lock<Set<String>>([])
  private let currentURLs = Lock<[String]>([])

  /// Where a browser finds the server.
  var urls: [String] { currentURLs.withLock { $0 } }

  /// Adds the names of a listener: those of loopback, its own host, and others.
  func add(_ address: Address, alsoKnownAs others: [String]) {
    var hosts = ["localhost", "127.0.0.1", "[::1]"] + others
    var ports = [""]
    switch address {
    case .unix: break
    case .tcp(let host, let port), .tls(let host, let port):
      let name = host.contains(":") ? "[\(host)]" : host
      hosts.append(name)
      ports = [":\(port)"]
      if port == 80 || port == 443 { ports.append("") }
      currentURLs.withLock { $0.append("\(address.isEncrypted ? "https" : "http")://\(name):\(port)/") }
    }
    let names = hosts.flatMap { host in ports.map { host.lowercased() + $0 } }
    self.names.withLock { $0.formUnion(names) }
  }

  func contains(_ host: RawSpan) -> Bool {
    let name = host.toString()
    return names.withLock { $0.contains(name) || $0.contains(name.lowercased()) }
  }
}
