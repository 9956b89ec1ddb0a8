import CSystemd
import Glibc
import Platform

/// The service manager's store of descriptors (`FileDescriptorStoreMax=` of systemd.service(5)): what is put there is passed to the next
/// process of the service, together with the sockets of its socket units.
package enum DescriptorStore {
  /// Whether the service has one. systemd says so from version 254 on; with an earlier one the unit has to set `FDSTORE` itself.
  package static var isEnabled: Bool {
    guard unsafe getenv("NOTIFY_SOCKET") != nil, let most = unsafe getenv("FDSTORE") else { return false }
    return Int(unsafe String(cString: most)) ?? 0 > 0
  }

  /// - Parameter name: ASCII without `:` and control characters, at most 255.
  package static func put(_ descriptor: Int32, name: String) {
    _ = unsafe sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=\(name)", [descriptor], 1)
  }

  /// Has all descriptors of that name closed, and waits until that is done, for a few seconds at most.
  package static func remove(_ name: String) {
    _ = unsafe sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=\(name)")
    _ = sd_notify_barrier(0, 5_000_000)
  }
}
