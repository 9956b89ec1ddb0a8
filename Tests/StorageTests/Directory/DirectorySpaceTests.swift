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
      try store.putWhenThereIsSpace([1], [UInt8](repeating: UInt8(round), count: size))
      // The journal is left when the store is idle and the entry has its file.
      let deadline = monotonicMilliseconds() + 60_000
      while Self.figure("directory_journal_bytes", of: store) != 0 || Self.figure("directory_files", of: store) != 1 {
        try #require(monotonicMilliseconds() < deadline)
        usleep(10_000)
      }
    }
    #expect(store.commitWriter?.failure == nil)
    let value = store.access { $0.copy(of: [1])?.entry.value }
    #expect(value == [UInt8](repeating: 2, count: 9 << 19))
  }
}
