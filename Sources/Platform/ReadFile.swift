import Glibc

/// Why a whole file can't be read.
package struct FileReadError: Error, Sendable {
  /// What is wrong and what to do, without the path.
  package let reason: String
}

/// Returns the bytes of a file, following links.
/// - Parameter maxByteCount: The maximum size of the file.
package func readFile(_ path: String, maxByteCount: Int) throws(FileReadError) -> [UInt8] {
  let file: Descriptor
  do { file = Descriptor(owning: try system("open") { unsafe open(path, O_RDONLY | O_CLOEXEC) }) } catch {
    throw FileReadError(reason: unsafe "can't be read: \(String(cString: strerror(error.errno)))")
  }
  var status = stat()
  let number = file.number
  guard unsafe fstat(number, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
    throw FileReadError(reason: "this is a folder; name a file")
  }
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
