import Platform

/// The scripts that locks and counters of well-known libraries consist of. Larder has no interpreter: it recognizes their
/// texts, however they are indented and quoted, and does what they do.
enum RESPScript: Sendable {
  /// Deletes an entry if it has a value.
  case deleteIfEqual
  /// Sets the expiry of an entry if it has a value, or adds to it.
  case extendIfEqual
  /// Sets the expiry of an entry if it has a value.
  case expireIfEqual
  /// Adds to a number if there is one.
  case addIfPresent
  /// Adds to a number.
  case add

  /// The number of arguments after the keys that it uses.
  var argumentCount: Int {
    switch self {
    case .deleteIfEqual, .addIfPresent, .add: 1
    case .expireIfEqual: 2
    case .extendIfEqual: 3
    }
  }

  /// The hashes of their texts without what doesn't matter.
  private static let known: [String: RESPScript] = [
    // The lock of redis-py and valkey-py: release, extend, reacquire.
    "8e70260bd12c5dab86e1cf83fd5955b048718fce": .deleteIfEqual,
    "b50b372bb9cb71ec7eb8f1eb83665fe1cd454833": .extendIfEqual,
    "f278027ae1d0b7be9acd85eeddcb9d61d0fb5f81": .expireIfEqual,
    // The counters of django-redis.
    "e2f10c5212bfc821567e3df4a164313c61ef386e": .addIfPresent,
    "fb8144401c089a1dbddf5fc7eb24a42b93c7cb92": .add,
    // Redlock: release and extend.
    "ccfaa2106fdcf998df5cf31df79ab22b3e652ac4": .deleteIfEqual,
    "b6a7f39231070c58204ed334faf17d0771a644b5": .expireIfEqual,
  ]

  /// - Returns: Nil if it is any other text.
  init?(_ text: [UInt8]) {
    guard let script = Self.known[SHA1.hex(of: Self.essence(of: text))] else { return nil }
    self = script
  }

  /// Returns a text without white space that separates nothing, with single quotes.
  static func essence(of text: [UInt8]) -> [UInt8] {
    func isPartOfWord(_ byte: UInt8?) -> Bool {
      guard let byte else { return false }
      return byte == UInt8(ascii: "_") || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & ~0x20)
    }
    var essence: [UInt8] = []
    var separates = false
    for byte in text {
      if RESPLine.isSpace(byte) {
        separates = true
        continue
      }
      if separates, isPartOfWord(essence.last), isPartOfWord(byte) { essence.append(0x20) }
      separates = false
      essence.append(byte == UInt8(ascii: "\"") ? UInt8(ascii: "'") : byte)
    }
    return essence
  }
}

/// The scripts that clients have loaded, by the hashes of their texts. Used by any thread.
final class RESPScripts: Sendable {
  private let loaded = Lock<[String: RESPScript]>([:])
  /// The maximum number of texts.
  private static let maxCount = 1_024

  /// Adds a text if it is a known script.
  /// - Returns: Its hash and what it does; nil if it is any other text.
  func load(_ text: [UInt8]) -> (hash: String, script: RESPScript)? {
    guard let script = RESPScript(text) else { return nil }
    let hash = SHA1.hex(of: text)
    loaded.withLock { loaded in
      if loaded.count >= Self.maxCount { loaded.removeAll() }
      loaded[hash] = script
    }
    return (hash, script)
  }

  /// Returns the script with a hash, which may have uppercase digits.
  func script(_ hash: String) -> RESPScript? { loaded.withLock { $0[hash.lowercased()] } }

  func removeAll() { loaded.withLock { $0.removeAll() } }
}
