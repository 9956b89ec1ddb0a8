import Platform
import Wire

/// Refuses what a browser may send in somebody else's name: requests for a name that isn't this server's, as after DNS
/// rebinding, and changes that another site has asked for.
enum HTTPGate {
  struct Refusal {
    let failure: CommandFailure
    let status: HTTPStatus
    /// A field that the response has, too.
    var field: (name: StaticString, value: String)?
  }

  /// Returns why a request for a name is refused; nil if the server has the name.
  static func refusalOfHost(of request: HTTPRequest, _ bytes: RawSpan, _ hosts: HTTPHosts) -> Refusal? {
    if let host = request[.host], hosts.contains(bytes.extracting(host)) { return nil }
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
