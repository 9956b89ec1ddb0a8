import CSystemd
import Glibc
import Platform

/// The sockets that the service manager passed to this process: sd_listen_fds_with_names(3).
///
/// They are in the order of the unit's `Listen…=` lines, each with the `FileDescriptorName=` of its socket unit. The
/// first call removes the environment variables that describe them, so that child processes don't take them for their
/// own.
package enum ActivationSockets {
  /// Returns the sockets, and removes the environment variables. Returns none if the process wasn't started by socket
  /// activation, or if the environment is for another process (`LISTEN_PID`).
  /// - Throws: An error if the environment is invalid.
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

/// The reason why the environment variables of passed sockets are invalid.
package struct ActivationError: Error, Equatable, Sendable, CustomStringConvertible {
  package let reason: SystemError
  package var description: String {
    """
    LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES don't say which sockets were passed (\(reason)); unset them unless a \
    service manager starts larderd
    """
  }
}

/// The service manager's file descriptor store (`FileDescriptorStoreMax=` of systemd.service(5)). The next process of
/// the service receives its descriptors together with the sockets of its socket units.
package enum DescriptorStore {
  /// Whether the service has a descriptor store. systemd sets `FDSTORE` from version 254 on; with an earlier version
  /// the unit must set it.
  package static var isEnabled: Bool {
    guard unsafe getenv("NOTIFY_SOCKET") != nil, let limit = unsafe getenv("FDSTORE") else { return false }
    return Int(unsafe String(cString: limit)) ?? 0 > 0
  }

  /// Adds a copy of a descriptor to the store.
  /// - Parameter name: The descriptor's name: at most 255 ASCII characters without `:` and control characters.
  package static func put(_ descriptor: Int32, name: String) {
    _ = unsafe sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=\(name)", [descriptor], 1)
  }

  /// Closes all descriptors with this name in the store, and waits a few seconds at most until they are closed.
  package static func remove(_ name: String) {
    _ = unsafe sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=\(name)")
    _ = sd_notify_barrier(0, 5_000_000)
  }
}
