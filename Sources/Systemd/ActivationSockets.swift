import CSystemd
import Glibc
import Platform

/// The sockets that the service manager passed to this process: sd_listen_fds_with_names(3).
///
/// They come in the order of the unit's `Listen…=` lines, each with the `FileDescriptorName=` of its socket unit. They are taken once; the
/// environment that tells of them is gone then, so that no child process takes them for its own.
package enum ActivationSockets {
  /// Takes them. There are none for a process that was started otherwise, or when the environment means another process (`LISTEN_PID`).
  /// - Throws: when the environment can't be understood.
  package static func take() throws(ActivationError) -> [InheritedSocket] {
    var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    let count = unsafe sd_listen_fds_with_names(1, &names)
    guard count >= 0 else { throw ActivationError(reason: SystemError("sd_listen_fds_with_names", errno: -count)) }
    guard count > 0, let names = unsafe names else { return [] }
    defer { unsafe free(names) }
    var sockets: [InheritedSocket] = []
    for index in 0..<count {
      let name = unsafe names[Int(index)]
      sockets.append(
        InheritedSocket(
          name: unsafe name.map { unsafe String(cString: $0) } ?? "", descriptor: SD_LISTEN_FDS_START + index))
      unsafe free(name)
    }
    return sockets
  }
}

/// An environment that tells of passed sockets in a way that can't be right.
package struct ActivationError: Error, Equatable, Sendable, CustomStringConvertible {
  package let reason: SystemError
  package var description: String {
    """
    LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES don't say which sockets were passed (\(reason)): unset them, unless a service manager \
    starts larderd
    """
  }
}
