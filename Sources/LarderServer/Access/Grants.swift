import Documents
import Glibc
import Storage
import Wire

/// What a connection may do. Owned by the connection.
struct Grants: Equatable, Sendable {
  /// The right to the server and to every store.
  private(set) var onAll: Right
  /// Rights to single stores, beyond that.
  private var onStores: [StoreName: StoreRights]

  static let everything = Grants(onAll: .admin)

  init(onAll: Right = .nothing, onStores: [StoreName: StoreRights] = [:]) {
    self.onAll = onAll
    self.onStores = onStores
  }

  init(_ rule: AccessRule) {
    self.init()
    add(rule)
  }

  var isNothing: Bool { onAll == .nothing && onStores.isEmpty }

  /// The rights to a store, which need not exist.
  func rights(to store: StoreName) -> StoreRights {
    var rights = onStores[store] ?? StoreRights()
    rights.add(onAll)
    return rights
  }

  /// The right to all of a store.
  func right(to store: StoreName) -> Right { max(onAll, onStores[store]?.toAll ?? .nothing) }

  mutating func add(_ rule: AccessRule) {
    if let store = rule.store {
      onStores[store, default: StoreRights()].add(rule.right, toKeysWith: rule.keyPrefix)
    } else {
      onAll = max(rule.right, onAll)
    }
  }
}

extension Grants {
  /// The rights as an array of objects: `Protocol/wire.md` §6.14.
  var json: JSONValue {
    var rights: [JSONValue] = []
    if onAll > .nothing { rights.append(["right": .string("\(onAll)")]) }
    for (store, right) in onStores.sorted(by: { $0.key.text < $1.key.text }) {
      rights += right.json.map { right in
        var right = right
        right["store"] = .string(store.text)
        return right
      }
    }
    return .array(rights)
  }
}

/// What a client may do with a store.
struct StoreRights: Equatable, Sendable {
  /// The right to entries whose keys begin with a prefix.
  private struct PrefixRight: Equatable {
    let prefix: [UInt8]
    var right: Right
  }

  /// The right to all of it.
  private(set) var toAll = Right.nothing
  /// Rights to some of its entries, beyond that, in the order of their prefixes.
  private var toPrefixes: [PrefixRight] = []

  init(_ right: Right = .nothing) { toAll = right }

  /// - Parameter prefix: What the keys begin with of the entries that the right is to; empty for the whole store.
  mutating func add(_ right: Right, toKeysWith prefix: String = "") {
    let prefix = Array(prefix.utf8)
    if prefix.isEmpty {
      toAll = max(toAll, right)
    } else if let index = toPrefixes.firstIndex(where: { $0.prefix == prefix }) {
      toPrefixes[index].right = max(toPrefixes[index].right, right)
    } else {
      let index = toPrefixes.firstIndex { prefix.lexicographicallyPrecedes($0.prefix) } ?? toPrefixes.endIndex
      toPrefixes.insert(PrefixRight(prefix: prefix, right: right), at: index)
    }
    toPrefixes.removeAll { $0.right <= toAll }
  }

  /// Whether they differ from entry to entry.
  var dependOnKeys: Bool { !toPrefixes.isEmpty }

  /// The right to the entry with a key, or to all entries whose keys begin with it.
  func right(to key: RawSpan) -> Right {
    var right = toAll
    for granted in toPrefixes where granted.right > right && key.starts(with: granted.prefix) { right = granted.right }
    return right
  }

  /// The right to at least some of it.
  var toAny: Right { toPrefixes.reduce(toAll) { max($0, $1.right) } }

  /// The shortest prefix of those with the greatest right; empty if rights don't depend on keys.
  var mainPrefix: [UInt8] {
    let greatest = toPrefixes.filter { $0.right == toAny }.min { $0.prefix.count < $1.prefix.count }
    return greatest?.prefix ?? []
  }

  /// The prefixes of the keys that may be read, if not all may. None begins with another.
  var readablePrefixes: [[UInt8]] {
    var prefixes: [[UInt8]] = []
    // A prefix precedes those that begin with it.
    for granted in toPrefixes where granted.right >= .read && prefixes.last.map(granted.prefix.starts) != true {
      prefixes.append(granted.prefix)
    }
    return prefixes
  }

  /// Whether a right to at least everything in other rights is among them.
  func includes(_ other: StoreRights) -> Bool {
    toAll >= other.toAll && other.toPrefixes.allSatisfy { unsafe right(to: $0.prefix.span.bytes) >= $0.right }
  }

  /// The rights as objects without the name of the store.
  fileprivate var json: [JSONValue] {
    (toAll > .nothing ? [["right": .string("\(toAll)")]] : [])
      + toPrefixes.map {
        ["right": .string("\($0.right)"), "keyPrefix": .string(String(decoding: $0.prefix, as: UTF8.self))]
      }
  }

  /// Whether they permit an operation, whatever it does with the store.
  func permit(_ operation: OperationDescriptor) -> Bool {
    switch operation.scope {
    case .server, .store, .keys: toAll >= operation.right
    case .storeInPart: toAny >= operation.right
    }
  }
}

/// A test whether a key begins with a prefix, which takes a few instructions but is not passed by every such key.
struct PrefixTest: BitwiseCopyable {
  /// The prefix, and which of its bits count.
  private var first: (bits: UInt64, mask: UInt64) = (0, 0)
  private var second: (bits: UInt64, mask: UInt64) = (0, 0)
  /// The minimum size of keys that can pass, so that all of their words are in the key.
  private let minKeySize: Int

  /// - Parameter prefix: Nothing passes if it is empty or too long.
  init(_ prefix: [UInt8]) {
    for (index, byte) in prefix.enumerated() where index < 16 {
      let shift = UInt64(index % 8 * 8)
      let (bits, mask) = (UInt64(byte) << shift, UInt64(0xFF) << shift)
      if index < 8 {
        first = (first.bits | bits, first.mask | mask)
      } else {
        second = (second.bits | bits, second.mask | mask)
      }
    }
    minKeySize = prefix.isEmpty || prefix.count > 16 ? .max : prefix.count > 8 ? 16 : 8
  }

  @inline(__always)
  func isPassed(by key: Range<Int>, in bytes: RawSpan) -> Bool {
    guard key.count >= minKeySize else { return false }
    let start = key.lowerBound
    let word = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start, as: UInt64.self)
    guard word & first.mask == first.bits else { return false }
    if second.mask == 0 { return true }
    let next = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start &+ 8, as: UInt64.self)
    return next & second.mask == second.bits
  }
}

extension RawSpan {
  func starts(with prefix: [UInt8]) -> Bool {
    guard prefix.count <= byteCount else { return false }
    return unsafe withUnsafeBytes { bytes in unsafe memcmp(bytes.baseAddress!, prefix, prefix.count) == 0 }
  }
}
