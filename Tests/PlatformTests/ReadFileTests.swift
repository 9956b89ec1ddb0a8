import Foundation
import Platform
import TestSupport
import Testing

struct ReadFileTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("tokens")
  }

  private func isRead(_ trust: FileTrust) -> Bool { (try? readFile(path, maxByteCount: 1, trusting: trust)) != nil }

  @Test func `what decides about rights can be changed by its owner only`() throws {
    try Data("x".utf8).write(to: URL(fileURLWithPath: path))
    for mode in 0...0o777 where mode & 0o400 != 0 {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
      #expect(isRead(.anyInput))
      #expect(isRead(.writableByOwner) == (mode & 0o022 == 0))
      #expect(isRead(.readableByGroup) == (mode & 0o027 == 0))
    }
  }

  @Test func `what decides about rights is a regular file`() throws {
    #expect(unsafe mkfifo(path, 0o600) == 0)
    #expect(!isRead(.writableByOwner) && !isRead(.readableByGroup))
    try FileManager.default.removeItem(atPath: path)
    // Links are followed, as those that systems for containers make.
    try Data("x".utf8).write(to: URL(fileURLWithPath: folder.file("target")))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder.file("target"))
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: folder.file("target"))
    #expect(isRead(.writableByOwner) && isRead(.readableByGroup))
  }
}
