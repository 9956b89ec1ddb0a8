import Glibc

/// Why a whole file can't be read.
package struct FileReadError: Error, Sendable {
  /// What is wrong and what to do, without the path at the beginning.
  package let reason: String
}

/// What a program that reads a file relies on.
package enum FileTrust: Sendable {
  /// Nothing. The file may be a pipe, such as those that shells make for `<(COMMAND)`.
  case anyInput
  /// That reading ends, and that nobody but the file's owner and root can change it, because it decides about rights.
  case writableByOwner
  /// The same, and that nobody but its owner and its group can read it.
  case readableByGroup

  /// Returns what is wrong with a file; nil if it can be trusted.
  fileprivate func complaint(about status: stat, _ path: String) -> String? {
    if status.st_mode & S_IFMT == S_IFDIR { return "this is a folder; name a file" }
    if self == .anyInput { return nil }
    guard status.st_mode & S_IFMT == S_IFREG else { return "this is not a regular file; name one" }
    guard status.st_mode & 0o022 == 0 else {
      return "others than its owner may write it; run: chmod go-w \(path)"
    }
    guard self != .readableByGroup || status.st_mode & 0o007 == 0 else {
      return "everyone may read it; run: chmod o= \(path)"
    }
    return nil
  }
}

/// Returns the bytes of a file, following links.
/// - Parameter maxByteCount: The maximum size of the file.
package func readFile(
  _ path: String, maxByteCount: Int, trusting trust: FileTrust = .anyInput
) throws(FileReadError) -> [UInt8] {
  // Opening a FIFO would wait for a writer.
  let flags = O_RDONLY | O_CLOEXEC | (trust == .anyInput ? 0 : O_NONBLOCK | O_NOCTTY)
  let file: Descriptor
  do { file = Descriptor(owning: try system("open") { unsafe open(path, flags) }) } catch {
    throw FileReadError(reason: "can't be read: \(error.reason)")
  }
  var status = stat()
  let number = file.number
  guard unsafe fstat(number, &status) == 0 else {
    throw FileReadError(reason: "can't be read: \(SystemError("fstat"))")
  }
  if let complaint = trust.complaint(about: status, path) { throw FileReadError(reason: complaint) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count: Int32
    do {
      count = try unsafe chunk.withUnsafeMutableBytes { buffer throws(SystemError) in
        try system("read") { unsafe Int32(read(number, buffer.baseAddress, buffer.count)) }
      }
    } catch {
      throw FileReadError(reason: "can't be read: \(error)")
    }
    guard count > 0 else { return bytes }
    bytes += chunk.prefix(Int(count))
    guard bytes.count <= maxByteCount else {
      throw FileReadError(reason: "the file has more than \(maxByteCount) bytes; name a smaller one")
    }
  }
}

/// Returns the first line of a file that only its owner can read, such as a password.
package func readSecretFile(_ path: String) throws(FileReadError) -> String {
  var status = stat()
  if unsafe stat(path, &status) == 0, status.st_mode & 0o077 != 0 {
    throw FileReadError(reason: "others than its owner may read it; run: chmod 600 \(path)")
  }
  let bytes = try readFile(path, maxByteCount: 4_096)
  return String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
}
