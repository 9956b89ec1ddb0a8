import CLinux
import Glibc

/// The other end of a socket, as the system reports it.
package enum Peer: Equatable, Sendable {
  /// A process of this machine and its effective user, at the time when it connected. The id is 0 for a process outside
  /// our PID namespace.
  case process(id: Int32, user: UInt32)
  /// A numeric host and a port, such as `127.0.0.1:52114` or `[::1]:52114`.
  case address(String)
  case unknown

  /// What its connections have in common: its user, or its host.
  package enum Origin: Hashable, Sendable, CustomStringConvertible {
    case user(UInt32)
    case host(String)
    case unknown

    package var description: String {
      switch self {
      case .user(let id): "uid \(id)"
      case .host(let host): host
      case .unknown: "unknown clients"
      }
    }
  }

  package var origin: Origin {
    switch self {
    case .process(_, let user): .user(user)
    case .address(let text): .host(String(text[..<(text.lastIndex(of: ":") ?? text.endIndex)]))
    case .unknown: .unknown
    }
  }
}

extension Peer: CustomStringConvertible {
  package var description: String {
    switch self {
    case .process(let id, let user): "process \(id) of uid \(user)"
    case .address(let text): text
    case .unknown: "unknown"
    }
  }
}

extension Socket {
  /// Returns the other end of a socket.
  package static func peer(of socket: borrowing Descriptor) -> Peer {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let number = socket.number
    let result = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(number, $0, &length) }
    }
    guard result == 0 else { return .unknown }
    if Int32(storage.ss_family) == AF_UNIX { return process(at: number) }
    return address(storage, length)
  }

  private static func process(at number: Int32) -> Peer {
    // `struct ucred` of unix(7): process, user and group. Swift's Glibc module doesn't have it.
    var credentials = (process: pid_t(0), user: uid_t(0), group: gid_t(0))
    var length = socklen_t(MemoryLayout.size(ofValue: credentials))
    guard unsafe getsockopt(number, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return .unknown }
    return .process(id: credentials.process, user: credentials.user)
  }

  private static func address(_ storage: sockaddr_storage, _ length: socklen_t) -> Peer {
    var storage = storage
    var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    var port = [CChar](repeating: 0, count: Int(NI_MAXSERV))
    let result = unsafe withUnsafePointer(to: &storage) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getnameinfo(
          $0, length, &host, socklen_t(host.count), &port, socklen_t(port.count), NI_NUMERICHOST | NI_NUMERICSERV)
      }
    }
    guard result == 0 else { return .unknown }
    func text(_ characters: [CChar]) -> String {
      String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    let name = text(host)
    return .address("\(name.contains(":") ? "[\(name)]" : name):\(text(port))")
  }
}

// MARK: - Credentials

/// The credentials of a process that connected to a Unix socket, as the kernel recorded them at that moment:
/// `SO_PEERCRED` and `SO_PEERGROUPS` of unix(7). A process can't forge them, and they don't change when the process
/// does.
package struct Credentials: Equatable, Sendable {
  /// The id of the process; 0 for one outside our PID namespace.
  package let process: Int32
  package let user: UInt32
  package let group: UInt32
  package let supplementaryGroups: [UInt32]

  package init(process: Int32, user: UInt32, group: UInt32, supplementaryGroups: [UInt32] = []) {
    self.process = process
    self.user = user
    self.group = group
    self.supplementaryGroups = supplementaryGroups
  }

  package func isIn(_ group: UInt32) -> Bool { group == self.group || supplementaryGroups.contains(group) }
}

extension Socket {
  /// Returns the credentials of the process at the other end of a Unix socket; nil for sockets of other families.
  package static func credentials(of socket: borrowing Descriptor) -> Credentials? {
    // `struct ucred`: process, user and group. Swift's Glibc module doesn't have it.
    var peer = (process: pid_t(0), user: uid_t(0), group: gid_t(0))
    var length = socklen_t(MemoryLayout.size(ofValue: peer))
    guard (try? SocketAddress(of: socket.number).family) == AF_UNIX,
      unsafe getsockopt(socket.number, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0
    else { return nil }
    return Credentials(
      process: peer.process, user: peer.user, group: peer.group, supplementaryGroups: groups(of: socket.number))
  }

  /// Returns the supplementary groups. On a kernel before 4.13, which doesn't report them, returns none, which grants
  /// no one too much access.
  private static func groups(of number: Int32) -> [UInt32] {
    var groups = [gid_t](repeating: 0, count: 64)
    while true {
      var length = socklen_t(groups.count * MemoryLayout<gid_t>.size)
      let result = unsafe getsockopt(number, SOL_SOCKET, SO_PEERGROUPS, &groups, &length)
      let count = Int(length) / MemoryLayout<gid_t>.size
      if result == 0 { return Array(groups.prefix(count)) }
      // There are more, and the call has returned their number.
      guard errno == ERANGE, count > groups.count else { return [] }
      groups = [gid_t](repeating: 0, count: count)
    }
  }
}
