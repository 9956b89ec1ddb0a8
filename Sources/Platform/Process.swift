import CLinux
import Glibc

/// Raises the process's limit of open descriptors to its hard limit.
/// - Returns: The new limit.
@discardableResult
package func raiseDescriptorLimit() -> Int {
  var limit = rlimit()
  guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
  limit.rlim_cur = limit.rlim_max
  _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  return Int(clamping: limit.rlim_cur)
}

/// Forbids core dumps of the process, and that other processes of its user read its memory, because it has secrets.
/// - Returns: Whether the system has done it.
@discardableResult
package func forbidCoreDumps() -> Bool { forbid_core_dumps() == 0 }

/// Returns how many times the calling thread has lost its core to another one while it had something to do.
package func involuntarySwitchCount() -> Int { involuntary_switches_of_thread() }

/// Returns the id of a user given by name or number; nil if there is no user of this name.
package func userID(_ text: String) -> UInt32? {
  UInt32(text) ?? (unsafe getpwnam(text).map { unsafe $0.pointee.pw_uid })
}

/// Returns the id of a group given by name or number; nil if there is no group of this name.
package func groupID(_ text: String) -> UInt32? {
  UInt32(text) ?? (unsafe getgrnam(text).map { unsafe $0.pointee.gr_gid })
}

/// Returns the name of a user; nil if the system knows none. May take long if another machine manages the users.
package func userName(ofID id: UInt32) -> String? {
  var entry = unsafe passwd()
  var found: UnsafeMutablePointer<passwd>?
  var room = [CChar](repeating: 0, count: 4_096)
  guard unsafe getpwuid_r(id, &entry, &room, room.count, &found) == 0, let name = unsafe found?.pointee.pw_name else {
    return nil
  }
  return unsafe String(cString: name)
}

/// Returns the groups of a user: its own first, then supplementary ones; none if the system doesn't know the user.
package func groups(ofUser id: UInt32) -> [UInt32] {
  guard let entry = unsafe getpwuid(id) else { return [] }
  var (groups, count) = ([gid_t](repeating: 0, count: 64), Int32(64))
  while unsafe getgrouplist(entry.pointee.pw_name, entry.pointee.pw_gid, &groups, &count) < 0 {
    groups = [gid_t](repeating: 0, count: max(Int(count), groups.count * 2))
    count = Int32(groups.count)
  }
  return Array(groups.prefix(Int(count)))
}

/// Writes a line to standard error with one system call.
package func logLine(_ line: String) {
  var line = line + "\n"
  line.withUTF8 { _ = unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

/// Returns the process's current folder.
package func currentFolder() -> String {
  guard let path = unsafe getcwd(nil, 0) else { return "/" }
  defer { unsafe free(path) }
  return unsafe String(cString: path)
}

/// Returns the name of a process, of at most 15 bytes; nil if there is no process with this id, or it isn't visible.
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

/// A set of processors, by the scheduler's numbers. Limited to the first 1,024.
package struct ProcessorSet: Equatable, Sendable {
  private static let wordCount = 16
  package let numbers: [Int]

  package init(_ numbers: [Int]) {
    precondition(numbers.allSatisfy { (0..<Self.wordCount * 64).contains($0) })
    self.numbers = numbers.sorted()
  }

  /// Returns the processors that the calling thread may run on.
  package static func ofCurrentThread() throws(SystemError) -> ProcessorSet {
    var mask = Array(repeating: 0 as UInt, count: wordCount)
    try system("sched_getaffinity") { unsafe Int32(get_affinity_of_thread(&mask, wordCount * 8)) }
    return ProcessorSet((0..<wordCount * 64).filter { mask[$0 / 64] >> ($0 % 64) & 1 != 0 })
  }

  /// Restricts the calling thread to these processors, and with it the threads and processes that it creates from now
  /// on.
  package func restrictCurrentThread() throws(SystemError) {
    var mask = Array(repeating: 0 as UInt, count: Self.wordCount)
    for number in numbers { mask[number / 64] |= 1 << (number % 64) }
    try system("sched_setaffinity") { unsafe Int32(set_affinity_of_thread(mask, Self.wordCount * 8)) }
  }
}

/// Returns the name of the machine.
package func machineName() -> String {
  var name = utsname()
  // Fails only for an invalid address.
  unsafe uname(&name)
  return unsafe withUnsafeBytes(of: name.nodename) { bytes in
    unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  }
}
