import Basics
import Glibc

/// The address of a server: `unix:/path/to.sock`, `tcp:HOST:PORT`, or `tls:HOST:PORT` for encrypted connections. An IPv6
/// host is in square brackets.
package enum Address: Hashable, Sendable, CustomStringConvertible {
  case unix(path: String)
  case tcp(host: String, port: UInt16)
  case tls(host: String, port: UInt16)

  /// The maximum length of a path in a socket address of Linux, in bytes, without its terminating NUL.
  package static let maxPathLength = 107

  package init(_ text: String) throws(AddressError) {
    guard !text.utf8.contains(0) else { throw AddressError(text, "it contains a NUL") }
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      guard !path.isEmpty else { throw AddressError(text, "it needs a path, as in unix:/run/larder.sock") }
      guard path.utf8.count <= Self.maxPathLength else {
        throw AddressError(
          text, "the path has \(path.utf8.count) bytes, but Linux allows at most \(Self.maxPathLength)")
      }
      self = .unix(path: path)
    } else if text.hasPrefix("tcp:") {
      let (host, port) = try Self.hostAndPort(of: text, after: "tcp:")
      self = .tcp(host: host, port: port)
    } else if text.hasPrefix("tls:") {
      let (host, port) = try Self.hostAndPort(of: text, after: "tls:")
      self = .tls(host: host, port: port)
    } else {
      throw AddressError(
        text, "an address is unix:/path/to.sock, tcp:HOST:PORT or tls:HOST:PORT\(Self.suggestion(for: text))")
    }
  }

  private static func hostAndPort(
    of text: String, after kind: String
  ) throws(AddressError) -> (host: String, port: UInt16) {
    let rest = text.dropFirst(kind.count)
    guard let colon = rest.lastIndex(of: ":"), let port = UInt16(digits: rest[rest.index(after: colon)...])
    else { throw AddressError(text, "it needs a port from 0 to 65535, as in \(kind)127.0.0.1:7411") }
    var host = rest[..<colon]
    if host.hasPrefix("[") && host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      throw AddressError(text, "write an IPv6 host in brackets, as in \(kind)[::1]:7411")
    }
    guard !host.isEmpty else { throw AddressError(text, "it needs a host, as in \(kind)127.0.0.1:7411") }
    return (String(host), port)
  }

  /// The same place for encrypted connections, if it isn't a Unix socket.
  package var encrypted: Address {
    if case .tcp(let host, let port) = self { .tls(host: host, port: port) } else { self }
  }

  /// Whether its connections are encrypted.
  package var isEncrypted: Bool { if case .tls = self { true } else { false } }

  /// Returns a hint for a text that lacks only its kind.
  private static func suggestion(for text: String) -> String {
    guard !text.contains("://") else { return "" }
    switch (text.contains("/"), try? Address("tcp:" + text)) {
    case (true, _): return "; did you mean unix:\(text)?"
    case (false, .tcp(let host, _)?) where host == "localhost" || host.contains(".") || host.contains(":"):
      return "; did you mean tcp:\(text)?"
    default: return ""
    }
  }

  package var description: String {
    switch self {
    case .unix(let path): "unix:\(path)"
    case .tcp(let host, let port): "tcp:\(Self.text(host, port))"
    case .tls(let host, let port): "tls:\(Self.text(host, port))"
    }
  }
}

extension Address {
  private static func text(_ host: String, _ port: UInt16) -> String {
    host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }
}

/// The reason why a text is not an address.
package struct AddressError: Error, Equatable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ text: String, _ reason: String) {
    description = "'\(text)' is not an address: \(reason)"
  }
}

extension Address {
  /// The address that the server and the commands use by default: a socket in the user's runtime directory, or in
  /// `/run` for root.
  package static var `default`: Address {
    if let folder = environment("XDG_RUNTIME_DIR"), let address = try? Address("unix:\(folder)/larder.sock") {
      return address
    }
    if getuid() == 0 { return .unix(path: "/run/larder.sock") }
    if let home = environment("HOME"), let address = try? Address("unix:\(home)/.larder.sock") { return address }
    return .unix(path: "/tmp/larder-\(getuid()).sock")
  }

  private static func environment(_ name: String) -> String? {
    guard let value = unsafe getenv(name).map({ unsafe String(cString: $0) }), !value.isEmpty else { return nil }
    return value
  }
}
