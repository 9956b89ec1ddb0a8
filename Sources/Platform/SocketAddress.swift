import CLinux
import Glibc

/// A socket address in the form of the system calls.
struct SocketAddress {
  private var storage = sockaddr_storage()
  private var length: socklen_t

  var family: Int32 { Int32(storage.ss_family) }

  /// - Precondition: the path has at most `Address.maxPathLength` bytes.
  init(path: String) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    precondition(path.utf8.count <= Address.maxPathLength)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    length = socklen_t(MemoryLayout<sockaddr_un>.size)
    unsafe withUnsafeMutableBytes(of: &storage) { target in
      unsafe withUnsafeBytes(of: address) { unsafe target.copyMemory(from: $0) }
    }
  }

  private init(_ address: UnsafePointer<sockaddr>, length: socklen_t) {
    self.length = length
    unsafe withUnsafeMutableBytes(of: &storage) {
      unsafe $0.copyMemory(from: .init(start: address, count: Int(length)))
    }
  }

  /// Returns the addresses of a host, in the resolver's order. Blocks for as long as the resolver takes.
  static func resolve(host: String, port: UInt16, forListening: Bool) throws(ResolveError) -> [SocketAddress] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(bitPattern: SOCK_STREAM.rawValue)
    unsafe hints.ai_flags = AI_NUMERICSERV | (forListening ? AI_PASSIVE : 0)
    var list: UnsafeMutablePointer<addrinfo>?
    let status = unsafe getaddrinfo(host, String(port), &hints, &list)
    guard status == 0 else { throw ResolveError(host: host, reason: unsafe String(cString: gai_strerror(status))) }
    defer { unsafe freeaddrinfo(list) }
    var found: [SocketAddress] = []
    while let entry = unsafe list?.pointee {
      unsafe found.append(SocketAddress(entry.ai_addr, length: entry.ai_addrlen))
      guard let next = unsafe entry.ai_next else { break }
      unsafe list = next
    }
    return found
  }

  /// Returns the address of a numeric host; nil for a name. Asks no name service.
  static func numeric(host: String, port: UInt16) -> SocketAddress? {
    var hints = unsafe addrinfo()
    unsafe hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(host, String(port), &hints, &list) == 0, let entry = unsafe list?.pointee else {
      return nil
    }
    defer { unsafe freeaddrinfo(list) }
    return unsafe SocketAddress(entry.ai_addr, length: entry.ai_addrlen)
  }

  /// Creates the address that a socket is bound to.
  init(of socket: Int32) throws(SystemError) {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    try system("getsockname") {
      unsafe withUnsafeMutablePointer(to: &storage) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe getsockname(socket, $0, &length)
        }
      }
    }
    self.storage = storage
    self.length = length
  }

  /// The port; nil for an address that has none.
  var port: UInt16? {
    unsafe withUnsafeBytes(of: storage) { bytes in
      switch family {
      case AF_INET: unsafe UInt16(bigEndian: bytes.load(as: sockaddr_in.self).sin_port)
      case AF_INET6: unsafe UInt16(bigEndian: bytes.load(as: sockaddr_in6.self).sin6_port)
      default: nil
      }
    }
  }

  /// Whether it is an IPv4 address in the form of an IPv6 address, such as ::ffff:127.0.0.1.
  var isMappedIPv4: Bool {
    guard family == AF_INET6 else { return false }
    return unsafe withUnsafeBytes(of: storage) { bytes in
      unsafe bytes[8..<18].allSatisfy { $0 == 0 } && bytes[18] == 0xFF && bytes[19] == 0xFF
    }
  }

  /// Whether the address is reachable only from this machine: that of a Unix socket, or a loopback address.
  var isLocal: Bool {
    unsafe withUnsafeBytes(of: storage) { bytes in
      switch family {
      case AF_UNIX: return true
      case AF_INET: return unsafe bytes[4] == 127
      case AF_INET6:
        let address = unsafe bytes[8..<24]
        return unsafe isMappedIPv4 ? address[20] == 127 : address.dropLast().allSatisfy { $0 == 0 } && address[23] == 1
      default: return false
      }
    }
  }

  /// The address in its textual form; nil for unsupported families. An abstract Unix address begins with `@` instead of
  /// its NUL.
  var address: Address? {
    switch family {
    case AF_UNIX:
      let start = MemoryLayout<sa_family_t>.size
      let path = unsafe withUnsafeBytes(of: storage) { unsafe Array($0[min(start, Int(length))..<Int(length)]) }
      let isAbstract = path.first == 0
      let name = isAbstract ? path[1...] : path.prefix { $0 != 0 }
      return .unix(path: (isAbstract ? "@" : "") + String(decoding: name, as: UTF8.self))
    case AF_INET, AF_INET6:
      var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      let status = unsafe withPointer { pointer, length in
        unsafe getnameinfo(pointer, length, &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST)
      }
      guard status == 0, let port else { return nil }
      return .tcp(host: String(decoding: host.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self), port: port)
    default: return nil
    }
  }

  func withPointer<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    unsafe withUnsafePointer(to: storage) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, length) }
    }
  }
}

/// The reason why a host name has no address.
package struct ResolveError: Error, Equatable, Sendable, CustomStringConvertible {
  package let host: String
  package let reason: String
  package var description: String { "no address for '\(host)': \(reason)" }
}

extension Address {
  /// Whether the address has a numeric host that other machines can reach.
  package var isNumericAndRemote: Bool {
    switch self {
    case .unix: return false
    case .tcp(let host, let port), .tls(let host, let port):
      return SocketAddress.numeric(host: host, port: port).map { !$0.isLocal } ?? false
    }
  }
}
