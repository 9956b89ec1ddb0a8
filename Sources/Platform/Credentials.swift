import CLinux
import Glibc

/// Who connected to a Unix socket, as the kernel saw the process at that moment: `SO_PEERCRED` and `SO_PEERGROUPS` of unix(7). A process
/// can't choose them, and what it becomes later doesn't change them.
package struct Credentials: Equatable, Sendable {
  /// 0 for a process that can't be seen from here.
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
  /// Who is at the other end of a Unix socket; nil for sockets of other families.
  package static func credentials(of socket: borrowing Descriptor) -> Credentials? {
    // `struct ucred`: process, user and group. Swift's Glibc doesn't have it.
    var peer = (process: pid_t(0), user: uid_t(0), group: gid_t(0))
    var length = socklen_t(MemoryLayout.size(ofValue: peer))
    guard (try? SocketAddress(of: socket.number).family) == AF_UNIX,
      unsafe getsockopt(socket.number, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0
    else { return nil }
    return Credentials(
      process: peer.process, user: peer.user, group: peer.group, supplementaryGroups: groups(of: socket.number))
  }

  /// None on a kernel that doesn't tell (before 4.13), which takes nobody for more than he is.
  private static func groups(of number: Int32) -> [UInt32] {
    var groups = [gid_t](repeating: 0, count: 64)
    while true {
      var length = socklen_t(groups.count * MemoryLayout<gid_t>.size)
      let result = unsafe getsockopt(number, SOL_SOCKET, SO_PEERGROUPS, &groups, &length)
      let count = Int(length) / MemoryLayout<gid_t>.size
      if result == 0 { return Array(groups.prefix(count)) }
      // There are more, and the call has said how many.
      guard errno == ERANGE, count > groups.count else { return [] }
      groups = [gid_t](repeating: 0, count: count)
    }
  }
}
