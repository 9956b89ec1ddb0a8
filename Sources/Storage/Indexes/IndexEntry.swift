/// An entry of an index, in place in the arena of its tree.
///
///     0   u32   size of the key (30 bits), arena's bits (2)
///     4   u32   handle of the document's record
///     8         key
@safe
struct IndexEntry {
  private static let headerByteCount = 8

  private let base: UnsafeMutableRawPointer

  @inline(__always)
  init(at base: UnsafeMutableRawPointer) { unsafe self.base = base }

  /// Returns the size of an entry, in the arena's units of 8 bytes. The arena has no smaller blocks than 2 units.
  @inline(__always)
  static func units(keyLength: Int) -> UInt32 {
    max(2, UInt32(truncatingIfNeeded: (headerByteCount &+ keyLength &+ 7) >> 3))
  }

  @inline(__always)
  private var header: UInt32 { unsafe base.load(as: UInt32.self) }

  @inline(__always)
  private var keyLength: Int { Int(header & ~Arena.ownBits) }

  @inline(__always)
  var isAllocated: Bool { header & Arena.inUse != 0 }

  @inline(__always)
  var units: UInt32 { Self.units(keyLength: keyLength) }

  @inline(__always)
  var key: Key { unsafe Key(start: base + Self.headerByteCount, count: keyLength) }

  /// The handle of the document's record.
  @inline(__always)
  var document: UInt32 {
    get { unsafe base.load(fromByteOffset: 4, as: UInt32.self) }
    nonmutating set { unsafe base.storeBytes(of: newValue, toByteOffset: 4, as: UInt32.self) }
  }

  /// Initializes a new block. Keeps the arena's bits.
  @inline(__always)
  func initialize(key: Key, document: UInt32) {
    let word = header & Arena.ownBits | UInt32(truncatingIfNeeded: key.count)
    unsafe base.storeBytes(of: word, as: UInt32.self)
    self.document = document
    unsafe (base + Self.headerByteCount).copyMemory(from: key.start, byteCount: key.count)
  }
}

/// The entries of an index. Those with equal keys are in the order of their documents' ids.
struct IndexEntries: OrderedBlocks {
  struct SearchKey {
    let key: Key
    /// The id of a document; nil for the place before or after all entries with the key.
    let id: Key?
  }

  private let arena: Arena.View
  private let records: Records

  @inline(__always)
  init(_ arena: Arena.View, of records: Records) {
    self.arena = arena
    self.records = records
  }

  @inline(__always)
  func entry(_ handle: UInt32) -> IndexEntry { unsafe IndexEntry(at: arena.address(handle)) }

  @inline(__always)
  func key(of entry: UInt32) -> Key { self.entry(entry).key }

  @inline(__always)
  func id(of entry: UInt32) -> Key { records.key(of: self.entry(entry).document) }

  @inline(__always)
  func isAllocated(_ entry: UInt32) -> Bool { self.entry(entry).isAllocated }

  @inline(__always)
  func precedes(_ entry: UInt32, _ key: SearchKey, _ bound: Key.Bound) -> Bool {
    let order = self.key(of: entry).order(key.key)
    guard order == 0 else { return order < 0 }
    guard let id = key.id else { return bound != .lower }
    return self.id(of: entry).precedes(id, bound)
  }
}

/// The keys of an index's entries.
struct IndexEntryKeys: KeyedBlocks {
  private let arena: Arena.View

  init(_ arena: Arena.View) { self.arena = arena }

  @inline(__always)
  func key(of entry: UInt32) -> Key { unsafe IndexEntry(at: arena.address(entry)).key }
}
