import Glibc
import TestSupport
import Testing

@testable import Platform

struct FileLockTests {
  @Test func `the file names the process that has locked it`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("lock")
    try folder.put("lock", Array("1234567890\n".utf8))
    let lock = try FileLock.acquire(path)
    #expect(try folder.contents("lock") == Array("\(getpid())\n".utf8))
    #expect(throws: FileLock.Failure.locked(by: getpid())) { _ = try FileLock.acquire(path) }
    _ = consume lock
    _ = try FileLock.acquire(path)
  }

  @Test func `a full disk doesn't prevent the lock`() throws {
    _ = try FileLock.acquire("/dev/full", creating: false)
  }
}
