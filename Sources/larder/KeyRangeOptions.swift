import ArgumentParser
import Larder

/// Which keys of a store a command is about: those with a prefix, in a range, and that match a pattern.
struct KeyRangeOptions: ParsableArguments {
  @Option(parsing: .unconditional, help: "Only keys with this prefix.")
  private(set) var prefix = ""

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Only this key and those after it, in the order of their bytes.", valueName: "key"))
  private(set) var from: String?

  @Option(parsing: .unconditional, help: ArgumentHelp("Only keys before this one.", valueName: "key"))
  private(set) var to: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Only keys that match this pattern, such as 'user:*': * is any text, ? one character, [a-z] one of several.",
      valueName: "pattern"),
    transform: { try KeyPattern($0) })
  private(set) var match: KeyPattern?

  /// A Boolean value that indicates whether the only limit is a prefix, which may be empty.
  var isPrefix: Bool { from == nil && to == nil && match == nil }

  var isEverything: Bool { isPrefix && prefix.isEmpty }

  /// Calls a function with the entries in the range, as they are at one point in time, in the order of their keys,
  /// until it returns false.
  /// - Parameter after: Where to begin; nil for the start.
  func forEachEntry(
    of store: RemoteStore, after: String? = nil, reverse: Bool = false, keysOnly: Bool = false,
    _ body: (Entry) async throws -> Bool
  ) async throws {
    let cursor = reverse ? Self.first(after, to) : Self.last(after, from.flatMap(Self.predecessor))
    let entries = store.all(prefix: scannedPrefix, after: cursor, reverse: reverse, keysOnly: keysOnly)
    for try await entry in entries {
      if let end = reverse ? from : to, reverse ? Self.isBefore(entry.key, end) : !Self.isBefore(entry.key, end) {
        return
      }
      guard entry.key.utf8.starts(with: prefix.utf8), match?.matches(entry.key) ?? true else { continue }
      guard try await body(entry) else { return }
    }
  }

  /// Returns the number of keys in the range.
  func count(in store: RemoteStore) async throws -> UInt64 {
    if isPrefix { return try await store.count(prefix: prefix) }
    var count: UInt64 = 0
    try await forEachEntry(of: store, keysOnly: true) { _ in
      count += 1
      return true
    }
    return count
  }

  /// The options as words of a command line, such as `["--prefix", "a"]`, without those that `after` replaces.
  func words(reverse: Bool) -> [String] {
    var words: [String] = []
    if !prefix.isEmpty { words += ["--prefix", prefix] }
    if let from, reverse { words += ["--from", from] }
    if let to, !reverse { words += ["--to", to] }
    if let match { words += ["--match", match.text] }
    return words
  }

  /// The longest prefix that all keys in the range have.
  private var scannedPrefix: String {
    guard let match, match.prefix.utf8.count > prefix.utf8.count else { return prefix }
    return match.prefix
  }

  // MARK: The order of keys

  private static func isBefore(_ one: String, _ other: String) -> Bool {
    one.utf8.lexicographicallyPrecedes(other.utf8)
  }

  private static func first(_ one: String?, _ other: String?) -> String? {
    guard let one, let other else { return one ?? other }
    return isBefore(other, one) ? other : one
  }

  private static func last(_ one: String?, _ other: String?) -> String? {
    guard let one, let other else { return one ?? other }
    return isBefore(one, other) ? other : one
  }

  /// Returns the last key that is possible before another one; nil if there is none. A cursor, which excludes itself,
  /// starts there to include the key.
  static func predecessor(of key: String) -> String? {
    var scalars = key.unicodeScalars
    guard let last = scalars.popLast() else { return nil }
    // Nothing is between a text and the same text with a NUL.
    guard last.value > 0 else { return scalars.isEmpty ? nil : String(scalars) }
    // There are no scalars from U+D800 to U+DFFF.
    scalars.append(Unicode.Scalar(last.value == 0xE000 ? 0xD7FF : last.value - 1)!)
    var text = String(scalars)
    // The greatest text of the maximum length follows, made of the greatest scalars of 4, 3, 2 and 1 bytes.
    for scalar: Unicode.Scalar in ["\u{10FFFF}", "\u{FFFF}", "\u{7FF}", "\u{7F}"] {
      let room = KeyLength.range.upperBound - text.utf8.count
      let size = UTF8.width(scalar)
      if room >= size { text += String(repeating: String(scalar), count: room / size) }
    }
    return text
  }
}
