/// What a store is to be, as people write it: `ENGINE[?option=value&…]`, such as `log?durability=interval:1s`.
package struct StoreSpecification: Equatable, Sendable {
  package let engine: EngineKind
  /// What was asked for; nil when nothing was.
  package let durability: Durability?

  package init(_ engine: EngineKind, durability: Durability? = nil) {
    self.engine = engine
    self.durability = durability
  }

  /// Throws `unknownEngine`, or `invalidOption` for an option that the engine doesn't have.
  package init(_ text: String) throws(StorageError) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    engine = try EngineKind(named: String(parts[0]))
    var durability: Durability?
    for option in parts.count == 2 ? parts[1].split(separator: "&", omittingEmptySubsequences: false) : [] {
      let pair = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard engine.isDurable, pair.count == 2, pair[0] == "durability" else {
        let known = engine.isDurable ? "has the option durability=always|interval:1s|none" : "has no options"
        throw .invalidOption("\"\(option)\" can't be understood: the engine \(engine.rawValue) \(known)")
      }
      guard let value = Durability(String(pair[1])) else {
        throw .invalidOption(
          "\"\(pair[1])\" is no durability: there are always, none, and interval: with a time up to 1 hour, as 1s")
      }
      durability = value
    }
    self.durability = durability
  }
}

extension StoreSpecification: CustomStringConvertible {
  /// As it is read.
  package var description: String {
    durability.map { "\(engine.rawValue)?durability=\($0)" } ?? engine.rawValue
  }
}

extension Store {
  /// What would make another store of this kind.
  package var specification: StoreSpecification { StoreSpecification(engine, durability: journal?.durability) }
}
