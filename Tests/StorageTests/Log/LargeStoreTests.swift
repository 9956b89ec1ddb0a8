import Foundation
import Platform
import TestSupport
import Testing

@testable import Storage

/// A store with more values than fit into memory, with its commit writer and on a real disk.
struct LargeStoreTests {
  private static let valueCount = 300
  private static let valueBytes = 1 << 20

  private static func value(_ number: Int) -> [UInt8] {
    var value = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: valueBytes)
    value[0] = UInt8(number >> 8)
    return value
  }

  /// The process's resident memory, in bytes.
  private var residentBytes: Int {
    let fields = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
    return (fields.flatMap { Int($0[1]) } ?? 0) * 4_096
  }

  private func open(_ folder: String, _ files: any FileSystem) throws -> Store {
    var map = EntryMap()
    let (engine, _) = try LogEngine.open(folder, files: files, now: 0, unixNow: 0, into: &map)
    return Store(name: try StoreName("large"), engine: .log, map: map, writingTo: engine, durability: .none)
  }

  @Test func `300 values of 1 MiB take little memory, and a restart reads little of them`() throws {
    let folder = try TemporaryFolder()
    let before = residentBytes
    var peak = 0
    var store = try open(folder.path, LocalFileSystem())
    for number in 0..<Self.valueCount {
      try store.putWhenThereIsSpace(Array("key \(number)".utf8), Self.value(number))
      peak = max(peak, residentBytes - before)
    }
    store.close()
    #expect(store.access { $0.statistics }.valuesOnDisk == Self.valueCount)
    #expect(store.access { $0.statistics }.memoryBytes < 1 << 20)
    // The memory of values that waited for a slow disk has been freed, though not all of it to the system.
    #expect(residentBytes - before < 100 << 20, "\((residentBytes - before) >> 20) MiB more than before")
    #expect(peak < 200 << 20, "\(peak >> 20) MiB more than before")

    let files = ObservedFiles()
    store = try open(folder.path, files)
    #expect(files.bytesRead < 4 << 20)
    #expect(files.reads < 3 * Self.valueCount)
    for number in [0, 150, 299] {
      let key = Array("key \(number)".utf8)
      let stored = store.access { map in unsafe map.get(key.span.bytes, now: 0)?.separatedValue }
      #expect(try stored?.bytes() == Self.value(number))
    }
    store.close()
  }
}
