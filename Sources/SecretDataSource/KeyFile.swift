import DataSources
import Foundation

/// An open file that should hold a key.
struct KeyFile {
  /// Longer than any key's file.
  private static let maxBytes = 256

  private let file: FileHandle

  static func open(_ path: String) throws -> KeyFile {
    KeyFile(file: try open(path, O_RDONLY | O_NONBLOCK))
  }

  /// Makes a file that only its owner may use, and brings it to the disk.
  static func make(_ path: String, _ text: String) throws {
    let file = try open(path, O_WRONLY | O_CREAT | O_EXCL)
    do {
      // Whatever the process's mask has taken away from it or not.
      guard fchmod(file.fileDescriptor, 0o600) == 0 else { throw failure("protect", path) }
      try file.write(contentsOf: Data(text.utf8))
      try file.synchronize()
    } catch {
      _ = unsafe unlink(path)
      throw DataSourceError(.failed, "can't write \(path): \(error.localizedDescription)")
    }
  }

  func checkIsPrivate(at path: String) throws {
    let status = try status(at: path)
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw DataSourceError(.notValid, "\(path) belongs to another user (\(status.st_uid)), who could read the key")
    }
    guard status.st_mode & 0o077 == 0 else {
      let mode = String(status.st_mode & 0o7777, radix: 8)
      throw DataSourceError(
        .notValid, "others may use \(path), whose mode is \(mode): make a new key, or run chmod 600 if nobody has")
    }
  }

  func key(at path: String) throws -> SecretKey {
    guard try status(at: path).st_mode & S_IFMT == S_IFREG else {
      throw DataSourceError(.notValid, "\(path) is not a regular file")
    }
    let content: Data
    do {
      content = try file.read(upToCount: Self.maxBytes) ?? Data()
    } catch {
      throw DataSourceError(.failed, "can't read \(path): \(error.localizedDescription)")
    }
    guard let key = content.count == SecretKey.byteCount ? content : Self.bytes(ofText: content) else {
      throw DataSourceError(
        .notValid, "\(path) is no key: it should have \(SecretKey.byteCount) bytes, or as many in hexadecimal digits")
    }
    return try SecretKey(key)
  }

  private static func bytes(ofText text: Data) -> Data? {
    let digits = text.last == UInt8(ascii: "\n") ? text.dropLast() : text
    guard digits.count == 2 * SecretKey.byteCount else { return nil }
    var bytes = Data()
    for digit in digits.enumerated() {
      guard let value = Character(UnicodeScalar(digit.element)).hexDigitValue else { return nil }
      if digit.offset % 2 == 0 { bytes.append(UInt8(value) << 4) } else { bytes[bytes.count - 1] |= UInt8(value) }
    }
    return bytes
  }

  private func status(at path: String) throws -> stat {
    var status = stat()
    guard unsafe fstat(file.fileDescriptor, &status) == 0 else { throw Self.failure("look at", path) }
    return status
  }

  private static func open(_ path: String, _ flags: Int32) throws -> FileHandle {
    while true {
      let descriptor = unsafe Foundation.open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
      if descriptor >= 0 { return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true) }
      if errno != EINTR { throw failure("open", path) }
    }
  }

  private static func failure(_ verb: String, _ path: String) -> DataSourceError {
    let isMissing = errno == ENOENT && verb == "open"
    let reason = POSIXErrorCode(rawValue: errno).map { POSIXError($0).localizedDescription } ?? "error \(errno)"
    return DataSourceError(isMissing ? .notFound : .failed, "can't \(verb) \(path): \(reason)")
  }
}
