import Documents
import Platform

/// The keys of documents whose values are in files, kept in a file of the store (Protocol/data-directory.md, §5), so that
/// none of these values is read to build the indexes again.
///
/// The file only saves time: whatever it lacks is made of the values. If it can't be read or written, nothing more is
/// kept until the store is opened again. Used by the builder's thread.
package final class KeptKeys: @unchecked Sendable {
  /// The size of what is read and written at once.
  private static let chunkByteCount = 256 << 10
  /// The file may have this many bytes more than twice what is needed of it.
  private static let tolerance = 256 << 10

  /// Which keys: those of a revision, in the index with a definition.
  private struct Name: Hashable {
    let revision: UInt64
    let definition: UInt32
  }

  private struct Place {
    let offset: Int
    let byteCount: Int
  }

  private let folder: String
  private let fileSystem: any FileSystem
  /// The file, once it was read; nil if there is none.
  private var file: (any File)?
  private var isUsable = true
  /// The definitions in the file.
  private var definitions: [[UInt8]] = []
  /// The end of the file, and what is to be written there.
  private var end = 0
  private var unwritten: [UInt8] = []
  /// The size of the records that were needed when that was last known.
  private var neededByteCount = 0

  /// The definitions of the indexes in use, and their numbers in the file.
  private var texts: [[UInt8]] = []
  private var numbers: [UInt32?] = []
  /// Where the keys are that can be found.
  private var places: [Name: Place] = [:]

  private var path: String { folder + "/index-keys" }

  /// - Parameter folder: The store's folder.
  init(in folder: String, on fileSystem: any FileSystem) {
    self.folder = folder
    self.fileSystem = fileSystem
  }

  /// Sets the indexes that `find` and `keep` are about.
  /// - Parameter finding: Whether keys are to be found.
  func use(_ indexes: [DocumentIndex], finding: Bool) {
    texts = indexes.map { $0.json.encoded() }
    attempt { () throws(SystemError) in
      if file == nil { try open() }
      places = [:]
      if finding, let file, definitions.contains(where: texts.contains) { try findPlaces(in: file) }
    }
    numbers = texts.map { text in definitions.firstIndex(of: text).map(UInt32.init) }
  }

  /// Gives up if `body` fails.
  private func attempt(_ body: () throws(SystemError) -> Void) {
    guard isUsable else { return }
    do throws(SystemError) { try body() } catch {
      isUsable = false
      (file, places, unwritten) = (nil, [:], [])
    }
  }

  /// Opens the file, if there is one, and removes what a crash has left behind its last intact record.
  private func open() throws(SystemError) {
    guard try fileSystem.kind(of: path) != nil else { return }
    let file = try fileSystem.open(path, .writing)
    var definitions: [[UInt8]] = []
    let end = try KeptKeyRecord.visit(file) { contents, _ in
      if case .definition(let text) = contents { definitions.append(text) }
    }
    try file.truncate(to: end)
    if end == 0 { unwritten = KeptKeyRecord.firstLine }
    (self.file, self.definitions, self.end) = (file, definitions, end)
  }

  private func findPlaces(in file: any File) throws(SystemError) {
    try write()
    let wanted = definitions.map(texts.contains)
    _ = try KeptKeyRecord.visit(file) { contents, range in
      guard case .keys(let keys) = contents, Int(keys.definition) < wanted.count, wanted[Int(keys.definition)] else {
        return
      }
      places[Name(revision: keys.value.revision, definition: keys.definition)] = Place(
        offset: range.lowerBound, byteCount: range.count)
    }
    neededByteCount = 0
  }

  // MARK: Finding and keeping

  /// Replaces the keys with those that are kept of a value, in all indexes in use.
  /// - Returns: Whether they are kept. Otherwise, the keys are undefined.
  func find(_ value: KeptKeyRecord.Value, id: Span<UInt8>, into keys: inout IndexKeys) -> Bool {
    guard !places.isEmpty, let file else { return false }
    keys.removeAll()
    for number in numbers {
      guard let number, let place = places[Name(revision: value.revision, definition: number)],
        let record = try? file.bytes(at: place.offset, count: place.byteCount),
        case .keys(let kept)? = KeptKeyRecord.contents(of: record[...]), kept.definition == number, kept.value == value,
        unsafe Key(kept.id.span.bytes).equals(Key(id.bytes))
      else { return false }
      kept.append(to: &keys)
      neededByteCount += place.byteCount
    }
    return true
  }

  /// Keeps the keys of a value in all indexes in use.
  func keep(_ keys: borrowing IndexKeys, of value: KeptKeyRecord.Value, id: Span<UInt8>) {
    guard isUsable else { return }
    if file == nil { attempt(create) }
    for (index, text) in texts.enumerated() {
      let number = numbers[index] ?? add(text)
      numbers[index] = number
      KeptKeyRecord.append(keys, of: index, definition: number, id: id, value, to: &unwritten)
    }
    if unwritten.count >= Self.chunkByteCount { attempt(write) }
  }

  private func create() throws(SystemError) {
    file = try fileSystem.open(path, .creating)
    (end, unwritten, definitions) = (0, KeptKeyRecord.firstLine, [])
  }

  private func add(_ definition: [UInt8]) -> UInt32 {
    KeptKeyRecord.append(definition: definition, to: &unwritten)
    definitions.append(definition)
    return UInt32(definitions.count - 1)
  }

  private func write() throws(SystemError) {
    guard let file, !unwritten.isEmpty else { return }
    try file.write(unwritten, at: end)
    end += unwritten.count
    unwritten.removeAll(keepingCapacity: unwritten.capacity <= 2 * Self.chunkByteCount)
  }

  // MARK: Replacing the file

  /// Writes what is to be written, and frees memory. If most of the file isn't needed any more, replaces it.
  func finish(_ store: Store) {
    places = [:]
    attempt { () throws(SystemError) in
      try write()
      guard let file, end > 2 * neededByteCount + Self.tolerance else { return }
      try replace(file, store)
    }
  }

  /// Replaces the file with one that has the keys of the documents that the store has now.
  private func replace(_ old: any File, _ store: Store) throws(SystemError) {
    let temporary = folder + "/.new-index-keys"
    if try fileSystem.kind(of: temporary) != nil { try fileSystem.remove(temporary) }
    let current = Set(store.indexReports.map { $0.index.json.encoded() })
    var definitions: [[UInt8]] = []
    file = try fileSystem.open(temporary, .creating)
    (end, unwritten) = (0, KeptKeyRecord.firstLine)
    _ = try KeptKeyRecord.visit(old) { (contents, _) throws(SystemError) in
      switch contents {
      case .definition(let text):
        // Without its text, a definition keeps its number.
        definitions.append(current.contains(text) ? text : [])
        KeptKeyRecord.append(definition: definitions[definitions.count - 1], to: &unwritten)
      case .keys(let keys):
        guard Int(keys.definition) < definitions.count, !definitions[Int(keys.definition)].isEmpty else { return }
        let isNeeded = store.access { map in
          unsafe map.handle(of: Key(keys.id.span.bytes), revision: keys.value.revision) != nil
        }
        if isNeeded { unwritten += keys.bytes }
      }
      if unwritten.count >= Self.chunkByteCount { try write() }
    }
    try write()
    try fileSystem.rename(temporary, to: path)
    (self.definitions, neededByteCount) = (definitions, end)
  }
}
