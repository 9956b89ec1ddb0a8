import Glibc

/// Replaces the contents of a file at once: readers, and a machine that loses its power, see the old contents or the new
/// ones. A file that exists keeps its mode and owner; a new one can be read by the group of its folder, and by nobody else.
package func replaceFile(_ path: String, with bytes: [UInt8]) throws(SystemError) {
  let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
  var (old, parent) = (stat(), stat())
  let exists = unsafe stat(path, &old) == 0
  try system("stat") { unsafe stat(folder, &parent) }
  let new = path + ".new"
  let file = Descriptor(
    owning: try system("open") { unsafe open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600) })
  let number = file.number
  do throws(SystemError) {
    var written = 0
    while written < bytes.count {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe write(number, $0.baseAddress.map { unsafe $0 + written }, $0.count - written)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw SystemError("write") }
      written += count
    }
    // Only root can give a file to others.
    _ = fchown(number, exists ? old.st_uid : uid_t.max, exists ? old.st_gid : parent.st_gid)
    try system("fchmod") { fchmod(number, exists ? old.st_mode & 0o7777 : 0o640) }
    try system("fsync") { fsync(number) }
    try system("rename") { unsafe rename(new, path) }
    let directory = Descriptor(
      owning: try system("open") { unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
    let directoryNumber = directory.number
    try system("fsync") { fsync(directoryNumber) }
  } catch {
    _ = unsafe unlink(new)
    throw error
  }
}
