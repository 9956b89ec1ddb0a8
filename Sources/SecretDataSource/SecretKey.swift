import Crypto
import DataSources
import Foundation

/// A 256-bit key that seals secrets. Its description identifies the key but reveals nothing of it.
///
/// A key file contains the 32 bytes of the key and nothing else, or 64 hexadecimal digits and optionally a newline.
public struct SecretKey: Sendable {
  private static let byteCount = 32

  let bytes: SymmetricKey
  /// Eight bytes that are derived from the key and distinguish it from others. They precede each sealed value in plain
  /// form.
  let fingerprint: Data

  /// Creates a key from the system's random numbers. `make(file:)` creates a key that outlives the process.
  public init() {
    self.init(SymmetricKey(size: .bits256))
  }

  /// Creates the key that consists of these 32 bytes.
  /// - Throws: `DataSourceError.illegalArgument` for any other number of bytes.
  public init(_ bytes: some ContiguousBytes) throws {
    let key = SymmetricKey(data: bytes)
    guard key.bitCount == Self.byteCount * 8 else {
      throw DataSourceError(
        .illegalArgument, "a key has \(Self.byteCount) bytes, not \(key.bitCount / 8)")
    }
    self.init(key)
  }

  private init(_ key: SymmetricKey) {
    bytes = key
    fingerprint = unsafe HKDF<SHA256>.deriveKey(
      inputKeyMaterial: key, info: Data("larder secret: fingerprint".utf8), outputByteCount: 8
    ).withUnsafeBytes { unsafe Data($0) }
  }

  // MARK: - Files

  /// Reads the key that systemd passes to the service under a name: with `LoadCredential=NAME:…` in its unit or, for a
  /// key that is encrypted on the disk, with `LoadCredentialEncrypted=NAME:…`. systemd makes sure that nobody else can
  /// read it.
  /// - Throws: `DataSourceError.notFound` if there is no such credential, `.notValid` if it is not a key, `.failed` if
  ///   it can't be read.
  public init(credential name: String) throws {
    try self.init(credential: name, in: ProcessInfo.processInfo.environment["CREDENTIALS_DIRECTORY"])
  }

  init(credential name: String, in directory: String?) throws {
    guard let directory else {
      throw DataSourceError(
        .notFound, "systemd passed no credentials: add LoadCredential=\(name):PATH to the service's unit")
    }
    guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else {
      throw DataSourceError(.illegalArgument, "\(name.debugDescription) can't be the name of a credential")
    }
    try self.init(reading: KeyFile(directory + "/" + name))
  }

  /// Reads the key from a file that only its owner can read or write. The owner must be the process's user or root.
  /// - Throws: `DataSourceError.notFound` if there is no such file, `.notValid` if others may access it or if it is not
  ///   a key, `.failed` if it can't be read.
  public init(file: URL) throws {
    let file = try KeyFile(file.path)
    try file.checkIsPrivate()
    try self.init(reading: file)
  }

  private init(reading file: KeyFile) throws {
    let content = try file.content()
    guard let key = content.count == Self.byteCount ? content : Self.bytes(ofText: content) else {
      throw DataSourceError(
        .notValid, "\(file.path) is not a key file: it must have \(Self.byteCount) bytes, or as many in hexadecimal")
    }
    try self.init(key)
  }

  /// Creates a new key in a new file that only its owner can read and write.
  /// - Throws: `DataSourceError.failed` if the file exists or can't be created; a file is never overwritten.
  @discardableResult
  public static func make(file: URL) throws -> SecretKey {
    let key = SecretKey()
    try KeyFile.create(file.path, unsafe key.bytes.withUnsafeBytes { unsafe Data($0) }.hexadecimal + "\n")
    return key
  }

  private static func bytes(ofText text: Data) -> Data? {
    let digits = text.last == UInt8(ascii: "\n") ? text.dropLast() : text
    guard digits.count == 2 * byteCount else { return nil }
    var bytes = Data()
    for digit in digits.enumerated() {
      guard let value = Character(UnicodeScalar(digit.element)).hexDigitValue else { return nil }
      if digit.offset % 2 == 0 { bytes.append(UInt8(value) << 4) } else { bytes[bytes.count - 1] |= UInt8(value) }
    }
    return bytes
  }
}

extension SecretKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "secret key \(fingerprint.hexadecimal)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Data {
  var hexadecimal: String {
    map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// An open file that should contain a key.
private struct KeyFile {
  /// More than the size of any key file.
  private static let maxBytes = 256

  let path: String
  private let file: FileHandle

  init(_ path: String) throws {
    self.path = path
    file = try Self.open(path, O_RDONLY | O_NONBLOCK)
  }

  /// Creates a file that only its owner can access, and brings it to the disk.
  static func create(_ path: String, _ text: String) throws {
    let file = try open(path, O_WRONLY | O_CREAT | O_EXCL)
    do {
      // Regardless of the process's file mode creation mask.
      guard fchmod(file.fileDescriptor, 0o600) == 0 else { throw posixFailure("protect", path) }
      try file.write(contentsOf: Data(text.utf8))
      try file.synchronize()
    } catch {
      _ = unsafe unlink(path)
      throw DataSourceError(.failed, "can't write \(path): \(error.localizedDescription)")
    }
  }

  func checkIsPrivate() throws {
    let status = try status()
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw DataSourceError(.notValid, "\(path) belongs to another user (\(status.st_uid)), who could read the key")
    }
    guard status.st_mode & 0o077 == 0 else {
      let mode = String(status.st_mode & 0o7777, radix: 8)
      throw DataSourceError(
        .notValid,
        "other users can access \(path), whose mode is \(mode): make a new key or, if nobody has read it, run chmod 600"
      )
    }
  }

  func content() throws -> Data {
    guard try status().st_mode & S_IFMT == S_IFREG else {
      throw DataSourceError(.notValid, "\(path) is not a regular file")
    }
    do {
      return try file.read(upToCount: Self.maxBytes) ?? Data()
    } catch {
      throw DataSourceError(.failed, "can't read \(path): \(error.localizedDescription)")
    }
  }

  private func status() throws -> stat {
    var status = stat()
    guard unsafe fstat(file.fileDescriptor, &status) == 0 else { throw Self.posixFailure("look at", path) }
    return status
  }

  private static func open(_ path: String, _ flags: Int32) throws -> FileHandle {
    while true {
      let descriptor = unsafe Foundation.open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
      if descriptor >= 0 { return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true) }
      if errno != EINTR { throw posixFailure("open", path) }
    }
  }

  private static func posixFailure(_ verb: String, _ path: String) -> DataSourceError {
    let isMissing = errno == ENOENT && verb == "open"
    let reason = POSIXErrorCode(rawValue: errno).map { POSIXError($0).localizedDescription } ?? "error \(errno)"
    return DataSourceError(isMissing ? .notFound : .failed, "can't \(verb) \(path): \(reason)")
  }
}
