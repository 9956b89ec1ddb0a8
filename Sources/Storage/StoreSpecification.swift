import Basics

/// The kind of a store, as people write it: `ENGINE[?option=value&…]`, such as `log?durability=interval:1s` or
/// `memory?limit=256MiB`.
package struct StoreSpecification: Equatable, Sendable {
  package let engine: EngineKind
  /// The requested durability; nil if the specification has none.
  package private(set) var durability: Durability?
  /// The requested memory limit; nil if the specification has none.
  package private(set) var limit: MemoryLimit?

  package init(_ engine: EngineKind, durability: Durability? = nil, limit: MemoryLimit? = nil) {
    self.engine = engine
    self.durability = durability
    self.limit = limit
  }

  /// Parses a specification.
  /// - Throws: `unknownEngine`, or `invalidOption` for an option that the engine doesn't have or an invalid value.
  package init(_ text: String) throws(StorageError) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    self.init(try EngineKind(named: String(parts[0])))
    for option in parts.count == 2 ? parts[1].split(separator: "&", omittingEmptySubsequences: false) : [] {
      let pair = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2, pair[0] == engine.option.rawValue else {
        throw .invalidOption(
          "invalid option \"\(option)\"; the only option of the engine \(engine.rawValue) is \(engine.option.usage)")
      }
      guard durability == nil, limit == nil else { throw .invalidOption("the option \(pair[0]) occurs twice") }
      switch engine.option {
      case .durability: durability = try Self.durability(pair[1])
      case .limit: limit = try Self.limit(pair[1])
      }
    }
  }

  private static func durability(_ text: Substring) throws(StorageError) -> Durability {
    guard let durability = Durability(String(text)) else {
      throw .invalidOption(
        "\"\(text)\" is not a durability; use always, none, or interval: with a time of up to 1 hour, such as 1s")
    }
    return durability
  }

  private static func limit(_ text: Substring) throws(StorageError) -> MemoryLimit {
    guard let limit = MemoryLimit(String(text)) else {
      throw .invalidOption(
        "\"\(text)\" is not a limit; use a whole number of KiB, MiB or GiB from 1MiB to 1024GiB, such as 256MiB")
    }
    return limit
  }
}

extension StoreSpecification: CustomStringConvertible {
  /// The specification in the form that `init(_:)` parses.
  package var description: String {
    let option = durability.map { "?durability=\($0)" } ?? limit.map { "?limit=\($0)" } ?? ""
    return engine.rawValue + option
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

extension Durability: CustomStringConvertible {
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
  private static let units: [(suffix: String, bytes: Int)] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
  private static let range = 1 << 20...1 << 40

  package let bytes: Int
}

extension MemoryLimit: CustomStringConvertible {
  /// Parses a whole number of `KiB`, `MiB` or `GiB`, from 1 MiB to 1,024 GiB; nil for anything else.
  package init?(_ text: String) {
    guard let unit = Self.units.first(where: { text.hasSuffix($0.suffix) }),
      let number = Int(digits: text.dropLast(unit.suffix.count))
    else { return nil }
    let (bytes, overflows) = number.multipliedReportingOverflow(by: unit.bytes)
    guard !overflows, Self.range.contains(bytes) else { return nil }
    self.bytes = bytes
  }

  /// The limit in the largest unit that divides it.
  package var description: String {
    let unit = Self.units.first { bytes % $0.bytes == 0 }
    return unit.map { "\(bytes / $0.bytes)\($0.suffix)" } ?? "\(bytes) bytes"
  }
}
