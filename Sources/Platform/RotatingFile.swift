import Glibc

/// A file to which whole lines are appended. Before it exceeds its maximum size, it is renamed to `NAME.1`, that one to
/// `NAME.2` and so on, and the oldest one is deleted.
///
/// It is a regular file, and no link is followed: whoever may write to its folder must not choose what grows.
package struct RotatingFile: ~Copyable {
  /// The number of earlier files that are kept.
  package static let keptCount = 4

  /// Why the file can't be written.
  package struct WriteError: Error, Sendable, CustomStringConvertible {
    package let description: String
  }

  private let path: String
  private let maxSize: Int
  /// The file, while it is open.
  private var descriptor: Descriptor?
  private var size = 0

  /// - Parameter maxSize: The maximum size, in bytes. A longer write has a file of its own.
  package init(_ path: String, maxSize: Int) { (self.path, self.maxSize) = (path, maxSize) }

  /// Closes the file until the next write, because it may have been renamed.
  package mutating func close() { descriptor = nil }

  /// Appends all of the bytes, or none. With none, creates the file.
  package mutating func append(_ bytes: [UInt8]) throws(WriteError) {
    if descriptor == nil { try open() }
    if size > 0, size + bytes.count > maxSize {
      try rotate()
      try open()
    }
    guard let number = descriptor?.number else { return }
    do throws(SystemError) { try Self.write(bytes, to: number) } catch {
      // The next line must not continue half of this one.
      _ = ftruncate(number, size)
      descriptor = nil
      throw WriteError(description: error.reason)
    }
    size += bytes.count
  }

  private static func write(_ bytes: [UInt8], to number: Int32) throws(SystemError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = try system("write") {
        unsafe rest.withUnsafeBytes { unsafe Int32(Glibc.write(number, $0.baseAddress, min($0.count, 1 << 30))) }
      }
      rest = rest.dropFirst(Int(count))
    }
  }

  private mutating func open() throws(WriteError) {
    // Opening a FIFO would wait for a reader.
    let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    let number = unsafe Glibc.open(path, flags, 0o640)
    guard number >= 0 else { throw WriteError(description: Self.reason(SystemError("open"))) }
    let file = Descriptor(owning: number)
    var status = stat()
    guard unsafe fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { throw .notRegular }
    size = status.st_size
    descriptor = consume file
  }

  private mutating func rotate() throws(WriteError) {
    descriptor = nil
    var names = [path]
    for number in 1...Self.keptCount { names.append("\(path).\(number)") }
    for (old, new) in zip(names, names.dropFirst()).reversed() {
      guard unsafe rename(old, new) != 0, errno != ENOENT else { continue }
      throw WriteError(description: "can't be renamed to \(new): \(SystemError("rename").reason)")
    }
  }

  private static func reason(_ error: SystemError) -> String {
    switch error.errno {
    case ELOOP: "this is a symbolic link, which is not followed; name the file itself"
    // A folder, and a FIFO without a reader or a socket.
    case EISDIR, ENXIO: WriteError.notRegular.description
    default: error.reason
    }
  }

  /// Returns why a file can't be opened, without creating it; nil if nothing is known.
  package static func complaint(about path: String) -> String? {
    var status = stat()
    if unsafe lstat(path, &status) == 0 {
      if status.st_mode & S_IFMT == S_IFLNK { return reason(SystemError("lstat", errno: ELOOP)) }
      return status.st_mode & S_IFMT == S_IFREG ? nil : WriteError.notRegular.description
    }
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    guard unsafe stat(folder, &status) == 0 else { return "\(folder): \(SystemError("stat").reason)" }
    return status.st_mode & S_IFMT == S_IFDIR ? nil : "\(folder) is not a folder"
  }
}

extension RotatingFile.WriteError {
  fileprivate static let notRegular = Self(description: "this is not a regular file; name one")
}
