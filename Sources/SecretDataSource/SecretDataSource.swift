import DataSources
import Foundation

/// A key-value source whose values are encrypted where they are kept: in a folder, or in any other key-value source of bytes.
///
/// Whoever reads that place without the key learns the keys of the entries, how many there are and how long, and nothing of the values.
/// Whoever writes to it can remove entries and bring back older values of the same key, but a value that was changed, or moved under
/// another key, is an error (`DataSourceError.dataSerialization`) and never a wrong value. So is one that was sealed with a key that the
/// source hasn't got. Values are JSON inside.
///
/// Keys are changed by a source with a new key and the old one among `older`: it reads what either has sealed, and seals with
/// the new one. `sealAgain()` brings all entries to the new key, after which the old one may go.
public struct SecretDataSource<T: Codable & Sendable>: KeyValueDataSource {
  private let source: any KeyValueDataSource<Data>
  private let seal: Seal

  /// - Parameters:
  ///   - source: where the sealed values are kept, each as a single value, lists too.
  ///   - key: what values are sealed and opened with.
  ///   - older: what values are also opened with.
  public init(_ source: some KeyValueDataSource<Data>, key: SecretKey, older: [SecretKey] = []) {
    self.source = source
    seal = Seal(key, older: older)
  }

  /// - Parameter directory: the folder in which the sealed values are kept, a file each. It is created by the first call, readable for its
  ///   owner only, when it isn't there.
  public init(directory: URL, key: SecretKey, older: [SecretKey] = []) {
    self.init(FileSystemDataSource(directory: directory), key: key, older: older)
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    try zip(keys, await source.entries(of: keys)).map { key, sealed in
      try sealed.map { try open(KeyValueEntry(key: key, value: $0)) }
    }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    try await source.entries(in: range).map { KeyValueEntry(key: $0.key, value: try open($0)) }
  }

  public func store(_ entries: [KeyValueEntry<T>]) async throws {
    try await source.store(entries.map(sealed))
  }

  public func remove(_ keys: [String]) async throws { try await source.remove(keys) }
  public func removeAll() async throws { try await source.removeAll() }

  /// Seals every entry again, with the newest key. Nobody should write meanwhile: what they write could be lost. O(n), all in memory.
  public func sealAgain() async throws {
    try await store(entries(in: .all))
  }

  private func sealed(_ entry: KeyValueEntry<T>) throws -> KeyValueEntry<Data> {
    let content: Data
    do {
      content = try JSONEncoder().encode(JSONEntry(entry))
    } catch {
      // The error may tell parts of the value.
      throw DataSourceError(.dataSerialization, "the value for \(entry.key.debugDescription) has no JSON")
    }
    return KeyValueEntry(key: entry.key, value: .single(try seal.seal(content, for: entry.key)))
  }

  private func open(_ entry: KeyValueEntry<Data>) throws -> StoredValue<T> {
    guard let sealed = entry.value.single else {
      throw DataSourceError(.dataSerialization, "what is under \(entry.key.debugDescription) is no sealed value")
    }
    let content = try seal.open(sealed, for: entry.key)
    do {
      return try JSONDecoder().decode(JSONEntry<T>.self, from: content).entry.value
    } catch {
      throw DataSourceError(.dataSerialization, "the value under \(entry.key.debugDescription) is no \(T.self)")
    }
  }
}

extension SecretDataSource: CustomStringConvertible, CustomReflectable {
  public var description: String { "SecretDataSource<\(T.self)>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
