import DataSources
import Foundation

// A key's file has the key's 32 bytes and nothing else, or 64 hexadecimal digits, which a newline may follow.

extension SecretKey {
  /// The key that systemd has handed the service under a name: `LoadCredential=NAME:…` or, encrypted on the disk too,
  /// `LoadCredentialEncrypted=NAME:…` in its unit. systemd sees to it that nobody else can read it.
  /// - Throws: `DataSourceError.notFound` when there is no such credential, `.notValid` when it is no key, `.failed` when it can't be read.
  public init(credential name: String) throws {
    try self.init(credential: name, in: ProcessInfo.processInfo.environment["CREDENTIALS_DIRECTORY"])
  }

  init(credential name: String, in directory: String?) throws {
    guard let directory else {
      throw DataSourceError(
        .notFound, "systemd has handed no credentials: put LoadCredential=\(name):PATH into the service's unit")
    }
    guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else {
      throw DataSourceError(.illegalArgument, "\(name.debugDescription) is no name of a credential")
    }
    let path = directory + "/" + name
    self = try KeyFile.open(path).key(at: path)
  }

  /// The key in a file that nobody but its owner can read or write, who is the process's user or root.
  /// - Throws: `DataSourceError.notFound` when there is no such file, `.notValid` when others may use it or when it is no key, `.failed`
  ///   when it can't be read.
  public init(file: URL) throws {
    let opened = try KeyFile.open(file.path)
    try opened.checkIsPrivate(at: file.path)
    self = try opened.key(at: file.path)
  }

  /// Makes a new key in a new file, which its owner only can read and write.
  /// - Throws: `DataSourceError.failed` when there is a file already or none can be made; nothing is ever overwritten.
  @discardableResult
  public static func make(file: URL) throws -> SecretKey {
    let key = SecretKey()
    try KeyFile.make(file.path, unsafe key.bytes.withUnsafeBytes { unsafe Data($0) }.hexadecimal + "\n")
    return key
  }
}
