/// What a store is to be, as people write it: `ENGINE[?option=value&…]`, such as `log?durability=interval:1s` or `memory?limit=256MiB`.
package struct StoreSpecification: Equatable, Sendable {
  package let engine: EngineKind
  /// What was asked for; nil when nothing was.
  package private(set) var durability: Durability?
  /// The same, for how much memory entries may take.
  package private(set) var limit: MemoryLimit?

  package init(_ engine: EngineKind, durability: Durability? = nil, limit: MemoryLimit? = nil) {
    self.engine = engine
    self.durability = durability
    self.limit = limit
  }

  /// Throws `unknownEngine`, or `invalidOption` for an option that the engine doesn't have.
  package init(_ text: String) throws(StorageError) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    self.init(try EngineKind(named: String(parts[0])))
    for option in parts.count == 2 ? parts[1].split(separator: "&", omittingEmptySubsequences: false) : [] {
      let pair = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2, pair[0] == (engine.isDurable ? "durability" : "limit") else {
        let known = engine.isDurable ? "durability=always|interval:1s|none" : "limit=256MiB"
        throw .invalidOption(
          "\"\(option)\" can't be understood: the engine \(engine.rawValue) has the option \(known), and no other")
      }
      if engine.isDurable { durability = try Self.durability(pair[1]) } else { limit = try Self.limit(pair[1]) }
    }
  }

  private static func durability(_ text: Substring) throws(StorageError) -> Durability {
    guard let durability = Durability(String(text)) else {
      throw .invalidOption(
        "\"\(text)\" is no durability: there are always, none, and interval: with a time up to 1 hour, as 1s")
    }
    return durability
  }

  private static func limit(_ text: Substring) throws(StorageError) -> MemoryLimit {
    guard let limit = MemoryLimit(String(text)) else {
      throw .invalidOption(
        "\"\(text)\" is no limit: it takes a whole number of KiB, MiB or GiB, from 1MiB to 1024GiB, as 256MiB")
    }
    return limit
  }
}

extension StoreSpecification: CustomStringConvertible {
  /// As it is read.
  package var description: String {
    let option = durability.map { "?durability=\($0)" } ?? limit.map { "?limit=\($0)" } ?? ""
    return engine.rawValue + option
  }
}

extension Store {
  /// What would make another store of this kind.
  package var specification: StoreSpecification {
    StoreSpecification(engine, durability: commitWriter?.durability, limit: limit)
  }
}
