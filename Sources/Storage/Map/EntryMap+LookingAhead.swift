import Platform

/// Looking ahead for a batch. A look-up in a large map is little work and two long waits for memory, one after the
/// other: for the index, then for the record. A batch waits for all its keys together when it first asks for every
/// chunk, then for every record, and only then does what was requested.
///
///     for each key: ahead[i] = map.aheadOfIndex(key)
///     for each key: map.aheadOfRecord(ahead[i])
///     for each key: map.get(key, now: now) …
///
/// None of it is needed for anything but speed. It is `mutating`, as look-ups are, because the compiler copies a large struct that is lent
/// to another module's function, and none that may be changed.
extension EntryMap {
  /// Where a key's look-up will go.
  package struct Ahead: BitwiseCopyable, Sendable {
    let hash: UInt32

    /// Nowhere.
    package init() { self.init(hash: 0) }

    init(hash: UInt32) { self.hash = hash }
  }

  /// Asks for the part of the index where the key belongs.
  package mutating func aheadOfIndex(_ key: RawSpan) -> Ahead { aheadOfIndex(Key(key)) }

  @inline(__always)
  func aheadOfIndex(_ key: Key) -> Ahead {
    let hash = hashIndex.hash(key)
    hashIndex.firstChunk(of: hash)?.prefetch()
    return Ahead(hash: hash)
  }

  /// Asks for the record that the key most likely has.
  package mutating func aheadOfRecord(_ ahead: Ahead) {
    guard let chunk = hashIndex.firstChunk(of: ahead.hash) else { return }
    var slots = chunk.slots(tagged: HashIndex.tag(of: ahead.hash))
    if let slot = slots.next() { record(chunk.handle(slot)).prefetch() }
  }
}
