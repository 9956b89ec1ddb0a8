import CLinux
import Glibc

/// Who is at the other end of a socket, as the system says.
package enum Peer: Equatable, Sendable {
  /// A process of this machine, as it was when it connected, and its effective user. The id is 0 for one that can't be seen from here.
  case process(id: Int32, user: UInt32)
  /// A numeric host and a port, as `127.0.0.1:52114` or `[::1]:52114`.
  case address(String)
  case unknown
}

extension Socket {
  /// Who connected.
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
    // `struct ucred` of unix(7): process, user and group. Swift's Glibc doesn't have it.
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

/// What a process is called, in at most 15 bytes; nil when there is none of that number, or it can't be seen.
package func commandName(ofProcess id: Int32) -> String? {
  guard id > 0 else { return nil }
  let number = unsafe open("/proc/\(id)/comm", O_RDONLY | O_CLOEXEC)
  guard number >= 0 else { return nil }
  let file = Descriptor(owning: number)
  var bytes = [UInt8](repeating: 0, count: 64)
  let count = unsafe read(file.number, &bytes, bytes.count)
  guard count > 0 else { return nil }
  return String(decoding: bytes[..<count].prefix { $0 != 10 }, as: UTF8.self)
}
