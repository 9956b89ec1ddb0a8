import ArgumentParser
import Larder

/// A time such as `500ms`, `5s`, `2m` or `1h`.
struct TimeSpan: Equatable {
  /// In milliseconds, as the protocol has it.
  static let range: ClosedRange<Int64> = 1...1 << 53
  let milliseconds: Int64

  init(_ text: String) throws(ValidationError) {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let unit: Int64? =
      switch text.dropFirst(digits.count) {
      case "ms": 1
      case "s": 1_000
      case "m": 60_000
      case "h": 3_600_000
      default: nil
      }
    guard let unit, let count = Int64(digits) else {
      throw ValidationError("a time is a whole number and a unit: 500ms, 5s, 2m, 1h")
    }
    let (milliseconds, overflow) = count.multipliedReportingOverflow(by: unit)
    guard !overflow, Self.range.contains(milliseconds) else {
      throw ValidationError("a time is at least a millisecond, and at most 2^53 of them")
    }
    self.milliseconds = milliseconds
  }

  var duration: Duration { .milliseconds(milliseconds) }
}

/// What a key may be.
enum KeyRule {
  static let text = "a key has 1 to 4096 bytes"

  static func allows(_ byteCount: Int) -> Bool { (1...4_096).contains(byteCount) }

  static func check(_ key: String) throws(ValidationError) -> String {
    guard allows(key.utf8.count) else { throw ValidationError("it has \(key.utf8.count) bytes, and \(text)") }
    return key
  }
}

/// The arguments that many commands have.
struct StoreArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The store's name.", valueName: "store"), completion: .custom(StoreCompletion.names))
  var name: String
}

struct StoreAndKeyArguments: ParsableArguments {
  @OptionGroup var store: StoreArgument

  @Argument(help: "The entry's key.", transform: KeyRule.check)
  var key: String
}
