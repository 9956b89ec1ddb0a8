import Glibc

/// The version of everything that is built here.
package let softwareVersion = "0.1.0"

/// Lets the process open as many descriptors as its hard limit allows.
/// - Returns: how many that are.
@discardableResult
package func raiseDescriptorLimit() -> Int {
  var limit = rlimit()
  guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
  limit.rlim_cur = limit.rlim_max
  _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  return Int(clamping: limit.rlim_cur)
}

/// The id of a user or group that is given by name or number; nil when there is none of that name.
package func userID(_ text: String) -> UInt32? {
  UInt32(text) ?? (unsafe getpwnam(text).map { unsafe $0.pointee.pw_uid })
}

package func groupID(_ text: String) -> UInt32? {
  UInt32(text) ?? (unsafe getgrnam(text).map { unsafe $0.pointee.gr_gid })
}

/// The name of a user; nil when the system knows none. May take long where users are kept on another machine.
package func userName(ofID id: UInt32) -> String? {
  var entry = unsafe passwd()
  var found: UnsafeMutablePointer<passwd>?
  var room = [CChar](repeating: 0, count: 4_096)
  guard unsafe getpwuid_r(id, &entry, &room, room.count, &found) == 0, let name = unsafe found?.pointee.pw_name else {
    return nil
  }
  return unsafe String(cString: name)
}

/// Writes a line to standard error, in one piece.
package func logLine(_ line: String) {
  var line = line + "\n"
  line.withUTF8 { _ = unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

/// The folder that relative paths begin in.
package func currentFolder() -> String {
  guard let path = unsafe getcwd(nil, 0) else { return "/" }
  defer { unsafe free(path) }
  return unsafe String(cString: path)
}
