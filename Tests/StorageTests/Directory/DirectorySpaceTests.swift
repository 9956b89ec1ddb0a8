import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

/// The space of a directory store's journals, as its commit writer uses it.
struct DirectorySpaceTests {
  private static func figure(_ name: String, of store: Store) -> UInt64? {
    store.commitWriter?.figures.first { $0.name == name }?.value
  }

  @Test func `a large value still fits after its predecessor's journal was left for a smaller one`() throws {
    let folder = try TemporaryFolder()
    let directory = try DataDirectory.open(folder.file("data"))
    let description = StoreDescription(name: try StoreName("a"), engine: .directory)
    try directory.create(description)
    let store = try Store.open(description, in: directory).store
    defer { store.close() }
    for (round, size) in [5 << 20, 9 << 19, 9 << 19].enumerated() {
      try store.putWhenThereIsSpace([UInt8(round)], [UInt8](repeating: UInt8(round), count: size))
      // The journal is left when the store is idle and all entries have their files.
      let deadline = monotonicMilliseconds() + 60_000
      while Self.figure("directory_journal_bytes", of: store) != 0
        || Self.figure("directory_files", of: store) != UInt64(round + 1)
      {
        try #require(monotonicMilliseconds() < deadline)
        usleep(10_000)
      }
    }
    #expect(store.commitWriter?.failure == nil)
    let value = store.access { $0.copy(of: [2])?.entry.value }
    #expect(value == [UInt8](repeating: 2, count: 9 << 19))
  }

  /// With the durability `none`, the commit thread doesn't sync journals.
  @Test func `journals don't stay open after the entries in them have their files`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder, journalByteCount: DirectoryRun.smallJournalByteCount)
    for round in 0..<100 {
      run.put([1], [UInt8](repeating: UInt8(round), count: DirectoryRun.smallJournalByteCount / 2))
      try run.write(syncs: false)
      try run.performMaintenance()
    }
    let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { descriptor in
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + descriptor)
      return target?.hasPrefix(folder.path) == true
    }
    #expect((1..<10).contains(open.count))
  }

  @Test func `overwriting never fills a disk that has room for the journals of a few writes`() throws {
    let disk = DirectoryRun.disk(seed: 1)
    var run = try DirectoryRun(disk)
    disk.byteLimit = disk.bytesTaken + 5 * DirectoryRun.smallJournalByteCount
    for round in 0..<500 {
      run.put([UInt8(round % 4)], [UInt8](repeating: UInt8(round % 256), count: 1_000))
      // Takes a step of the settling thread only if there is no space for the commit.
      try run.write()
    }
    try run.reopen()
    try run.performMaintenance()
    #expect(try run.entryNames().count == 4)
  }
}
