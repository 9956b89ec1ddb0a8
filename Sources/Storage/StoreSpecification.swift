import Basics

/// The kind of a store, as people write it: `ENGINE[?option=value&…]`, such as `log?durability=interval:1s` or
/// `memory?limit=256MiB`.
package struct StoreSpecification: Equatable, Sendable {
  package let engine: EngineKind
  /// Valid values by the names of the engine's options.
  private var values: [String: String] = [:]

  /// Creates a specification with those of the options that the engine has.
  package init(_ engine: EngineKind, durability: Durability? = nil, limit: MemoryLimit? = nil) {
    self.engine = engine
    for option in engine.options {
      switch option.name {
      case EngineOption.durability.name: values[option.name] = durability?.description
      case EngineOption.limit.name: values[option.name] = limit?.description
      default: break
      }
    }
  }

  /// Parses a specification.
  /// - Parameter engines: The engines that there are.
  /// - Throws: `unknownEngine`, or `invalidOption` for an option that the engine doesn't have or an invalid value.
  package init(_ text: String, engines: [EngineKind] = .builtIn) throws(StorageError) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    engine = try engines.named(String(parts[0]))
    for option in parts.count == 2 ? parts[1].split(separator: "&", omittingEmptySubsequences: false) : [] {
      let pair = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard pair.count == 2, engine.options.contains(where: { $0.name == pair[0] }) else {
        throw .invalidOption("invalid option \"\(option)\"; \(engine.optionList)")
      }
      guard values[pair[0]] == nil else { throw .invalidOption("the option \(pair[0]) occurs twice") }
      try set(pair[0], to: pair[1])
    }
  }

  /// Sets an option of the engine.
  /// - Throws: `invalidOption` for an invalid value.
  mutating func set(_ name: String, to text: String) throws(StorageError) {
    guard let option = engine.options.first(where: { $0.name == name }) else {
      preconditionFailure("the engine \(engine) has no option \(name)")
    }
    values[name] = try option.canonical(text)
  }

  /// Returns the value of an option; nil if the specification doesn't have it.
  package func value<Value: LosslessStringConvertible>(of option: String, as type: Value.Type = Value.self) -> Value? {
    values[option].flatMap { Value($0) }
  }

  /// The requested durability; nil if the specification has none.
  package var durability: Durability? { value(of: EngineOption.durability.name) }
  /// The requested memory limit; nil if the specification has none.
  package var limit: MemoryLimit? { value(of: EngineOption.limit.name) }

  /// The specification with a value for every option that has a default.
  package var complete: StoreSpecification {
    var specification = self
    for option in engine.options where values[option.name] == nil {
      specification.values[option.name] = option.defaultValue
    }
    return specification
  }

  /// Returns the same specification with that one of some engines that has the engine's name.
  /// - Throws: `unknownEngine`.
  func served(by engines: [EngineKind]) throws(StorageError) -> StoreSpecification {
    StoreSpecification(try engines.named(engine.name), values)
  }

  private init(_ engine: EngineKind, _ values: [String: String]) { (self.engine, self.values) = (engine, values) }

  /// Returns whether a store with another specification is what this one requests: it has the same engine, and the same
  /// values of all options that this one has.
  package func fits(_ other: StoreSpecification) -> Bool {
    engine == other.engine && values.allSatisfy { other.values[$0.key] == $0.value }
  }
}

extension StoreSpecification: CustomStringConvertible {
  /// The specification in the form that `init(_:)` parses.
  package var description: String {
    let options = engine.options.compactMap { option in values[option.name].map { "\(option.name)=\($0)" } }
    return options.isEmpty ? engine.name : "\(engine.name)?\(options.joined(separator: "&"))"
  }
}

extension EngineKind {
  /// The engine's options, for an error.
  fileprivate var optionList: String {
    switch options.count {
    case 0: "the engine \(name) has no options"
    case 1: "the only option of the engine \(name) is \(options[0].usage)"
    default: "the options of the engine \(name) are \(options.map(\.usage).joined(separator: ", "))"
    }
  }
}

/// What a durable store guarantees for a write that it has acknowledged.
package enum Durability: Equatable, Sendable {
  /// The write is on disk.
  case always
  /// The write will be on disk within that time; a crash of the machine before then loses it.
  case interval(Duration)
  /// The write will be on disk when the operating system decides to write it.
  case none
}

extension Durability: LosslessStringConvertible {
  /// The longest interval, in milliseconds: one hour.
  package static let maxIntervalMilliseconds = 3_600_000

  /// Parses `always`, `none`, or `interval:` and a whole number of `s` or `ms`, up to an hour; nil for anything else.
  package init?(_ text: String) {
    switch text {
    case "always": self = .always
    case "none": self = .none
    default:
      guard text.hasPrefix("interval:") else { return nil }
      let time = text.dropFirst("interval:".count)
      let (unit, scale) = time.hasSuffix("ms") ? (2, 1) : (1, 1_000)
      guard time.hasSuffix("s"), let number = Int(digits: time.dropLast(unit)) else { return nil }
      let (milliseconds, overflows) = number.multipliedReportingOverflow(by: scale)
      guard !overflows, (1...Self.maxIntervalMilliseconds).contains(milliseconds) else { return nil }
      self = .interval(.milliseconds(milliseconds))
    }
  }

  /// The durability in the form that `init(_:)` parses.
  package var description: String {
    switch self {
    case .always: return "always"
    case .none: return "none"
    case .interval(let time):
      let milliseconds = time.wholeMilliseconds
      return milliseconds % 1_000 == 0 ? "interval:\(milliseconds / 1_000)s" : "interval:\(milliseconds)ms"
    }
  }
}

/// The memory limit for the entries of a store.
package struct MemoryLimit: Equatable, Sendable {
  private static let range = 1 << 20...1 << 40

  package let bytes: Int
}

extension MemoryLimit: LosslessStringConvertible {
  /// Parses a size (`ByteSize`) from 1 MiB to 1,024 GiB; nil for anything else.
  package init?(_ text: String) {
    guard let size = ByteSize(text), Self.range.contains(size.bytes) else { return nil }
    bytes = size.bytes
  }

  package var description: String { "\(ByteSize(bytes: bytes))" }
}
