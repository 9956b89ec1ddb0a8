import DataSources
import Foundation
import TestSupport
import Testing

@testable import SecretDataSource

@Suite struct SecretKeyTests {
  private let directory: TemporaryFolder
  private let file: URL

  init() throws {
    directory = try TemporaryFolder()
    file = directory.url.appendingPathComponent("key")
  }

  func write(_ bytes: Data, mode: Int = 0o600) throws {
    try bytes.write(to: file)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
  }

  @Test func `a new key can be read from its file`() throws {
    let made = try SecretKey.make(file: file)
    #expect(try SecretKey(file: file).fingerprint == made.fingerprint)
    let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(throws: DataSourceError.failed) { try SecretKey.make(file: file) }
    #expect(try SecretKey(file: file).fingerprint == made.fingerprint)
  }

  @Test func `two new secret keys differ`() {
    #expect(SecretKey().fingerprint != SecretKey().fingerprint)
  }

  @Test func `a key file has 32 bytes or their digits`() throws {
    let bytes = Data((0..<32).map { $0 &* 37 })
    let key = try SecretKey(bytes)
    for content in [bytes, Data(bytes.hexadecimal.utf8), Data((bytes.hexadecimal.uppercased() + "\n").utf8)] {
      try write(content)
      #expect(try SecretKey(file: file).fingerprint == key.fingerprint)
    }
    #expect(throws: DataSourceError.illegalArgument) { try SecretKey(Data(count: 31)) }
  }

  @Test(arguments: [
    "", "short", String(repeating: "g", count: 64), String(repeating: "é", count: 32),
    String(repeating: "0", count: 66),
  ])
  func `a key file with other content is refused`(_ text: String) throws {
    try write(Data(text.utf8))
    #expect(throws: DataSourceError.notValid) { try SecretKey(file: file) }
  }

  @Test(arguments: [0o640, 0o604, 0o620, 0o601, 0o660])
  func `a file that others may access is rejected`(_ mode: Int) throws {
    try SecretKey.make(file: file)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
    #expect(throws: DataSourceError.notValid) { try SecretKey(file: file) }
    try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: file.path)
    #expect(throws: Never.self) { try SecretKey(file: file) }
  }

  @Test func `a key file that is missing or isn't a regular file is an error`() throws {
    #expect(throws: DataSourceError.notFound) { try SecretKey(file: file) }
    try SecretKey.make(file: file)
    let link = directory.url.appendingPathComponent("link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
    #expect(throws: DataSourceError.failed) { try SecretKey(file: link) }
    #expect(throws: DataSourceError.notValid) { try SecretKey(file: directory.url) }
    let pipe = directory.url.appendingPathComponent("pipe")
    #expect(unsafe mkfifo(pipe.path, 0o600) == 0)
    #expect(throws: DataSourceError.notValid) { try SecretKey(file: pipe) }
  }

  @Test func `a credential is read by name`() throws {
    let made = try SecretKey.make(file: file)
    // systemd makes credentials readable for the group root, and protects them by other means.
    try FileManager.default.setAttributes([.posixPermissions: 0o440], ofItemAtPath: file.path)
    #expect(try SecretKey(credential: "key", in: directory.url.path).fingerprint == made.fingerprint)
    #expect(throws: DataSourceError.notFound) { try SecretKey(credential: "other", in: directory.url.path) }
    #expect(throws: DataSourceError.notFound) { try SecretKey(credential: "key", in: nil) }
    for name in ["", ".", "..", "../key", "a/b"] {
      #expect(throws: DataSourceError.illegalArgument) { try SecretKey(credential: name, in: directory.url.path) }
    }
  }

  @Test func `a key never reveals its bytes`() throws {
    let bytes = Data(repeating: 0xAB, count: 32)
    let key = try SecretKey(bytes)
    var dumped = ""
    dump(key, to: &dumped)
    for text in ["\(key)", String(reflecting: key), dumped] {
      #expect(text.contains(key.fingerprint.hexadecimal))
      #expect(!text.lowercased().contains("abab") && !text.contains("171"))
    }
  }
}
