import DataSources
import Foundation

/// A key-value source whose values are encrypted where they are stored: in a directory, or in any other key-value
/// source of bytes.
///
/// Anyone who reads that place without the key learns the keys of the entries, their number and their sizes, but
/// nothing of the values. Anyone who writes to it can remove entries and restore older values of the same entry. But a
/// value that was changed, or moved to another entry, is an error (`DataSourceError.dataSerialization`) and never a
/// wrong value. A value that was sealed with a key that the source doesn't have is an error of its own
/// (`DataSourceError.wrongKey`), which says which key that is. Inside, values are JSON.
///
/// To change the key, create a source with the new key and the old one among `older`. It reads what either key has
/// sealed, and seals with the new one. `sealAgain()` seals all entries with the new key; after that, the old one is no
/// longer needed.
public struct SecretDataSource<T: Codable & Sendable>: KeyValueDataSource {
  private let source: any KeyValueDataSource<Data>
  private let seal: Seal
  private let damaged: DamagedEntries

  /// - Parameters:
  ///   - source: The source that stores the sealed values, each as a single value, even if it is a list.
  ///   - key: The key that seals and opens values.
  ///   - older: Further keys that open values.
  ///   - damaged: What calls for several entries do about damaged ones. A missing key is no damage.
  public init(
    _ source: some KeyValueDataSource<Data>, key: SecretKey, older: [SecretKey] = [], damaged: DamagedEntries = .fail
  ) {
    self.source = source
    seal = Seal(key, older: older)
    self.damaged = damaged
  }

  /// - Parameters:
  ///   - directory: The directory that stores the sealed values, one file each. The first call creates it, readable for
  ///     its owner only, if it doesn't exist.
  ///   - older: Further keys that open values.
  ///   - damaged: What calls for several entries do about damaged ones. A missing key is no damage.
  public init(directory: URL, key: SecretKey, older: [SecretKey] = [], damaged: DamagedEntries = .fail) {
    self.init(FileSystemDataSource(directory: directory, damaged: damaged), key: key, older: older, damaged: damaged)
  }

  public func entry(of key: String) async throws -> StoredValue<T>? {
    try await source.entry(of: key).map { try open(KeyValueEntry(key: key, value: $0)) }
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    let sealed = try await source.entries(of: keys)
    return try reading { report in
      try zip(keys, sealed).map { key, sealed in
        try sealed.flatMap { sealed in try report.reading(key) { try open(KeyValueEntry(key: key, value: sealed)) } }
      }
    }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    let sealed = try await source.entries(in: range)
    return try reading { report in
      try sealed.compactMap { entry in
        try report.reading(entry.key) { KeyValueEntry(key: entry.key, value: try open(entry)) }
      }
    }
  }

  /// Returns the keys of all entries, in the order of their bytes. Opens no entries.
  public func keys(prefix: String) async throws -> [String] { try await source.keys(prefix: prefix) }

  /// Runs a body that opens entries, and reports the damaged ones that it finds.
  private func reading<R>(_ body: (inout DamageReport) throws -> R) rethrows -> R {
    var report = DamageReport(damaged)
    let result = try body(&report)
    report.send()
    return result
  }

  public func store(_ entries: [KeyValueEntry<T>]) async throws {
    try await source.store(entries.map(sealed))
  }

  public func remove(_ keys: [String]) async throws { try await source.remove(keys) }
  public func removeAll() async throws { try await source.removeAll() }

  /// Seals every entry again, with the newest key. Writes by others meanwhile may be lost. O(n), all in memory.
  public func sealAgain() async throws {
    try await store(entries(in: .all))
  }

  private func sealed(_ entry: KeyValueEntry<T>) throws -> KeyValueEntry<Data> {
    let content: Data
    do {
      content = try JSONEncoder().encode(JSONEntry(entry))
    } catch {
      // Don't show the error: it may contain parts of the value.
      throw DataSourceError(
        .dataSerialization, "the value for \(entry.key.debugDescription) can't be encoded as JSON")
    }
    return KeyValueEntry(key: entry.key, value: .single(try seal.seal(content, for: entry.key)))
  }

  private func open(_ entry: KeyValueEntry<Data>) throws -> StoredValue<T> {
    guard let sealed = entry.value.single else {
      throw DataSourceError(.dataSerialization, "there is no sealed value under \(entry.key.debugDescription)")
    }
    let content = try seal.open(sealed, for: entry.key)
    do {
      return try JSONDecoder().decode(JSONEntry<T>.self, from: content).entry.value
    } catch {
      throw DataSourceError(.dataSerialization, "the value under \(entry.key.debugDescription) is not a \(T.self)")
    }
  }
}

extension SecretDataSource: CustomStringConvertible, CustomReflectable {
  public var description: String { "SecretDataSource<\(T.self)>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
