import ArgumentParser
import Larder

/// A duration on the command line, such as `500ms`, `5s`, `2m` or `1h`.
struct DurationArgument: Equatable {
  /// The durations that the protocol can express, in milliseconds.
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
      throw ValidationError("a duration is a whole number and a unit, such as 500ms, 5s, 2m or 1h")
    }
    let (milliseconds, overflow) = count.multipliedReportingOverflow(by: unit)
    guard !overflow, Self.range.contains(milliseconds) else {
      throw ValidationError("a duration is from 1 ms to 2^53 ms")
    }
    self.milliseconds = milliseconds
  }

  var duration: Duration { .milliseconds(milliseconds) }
}

/// A whole number on the command line. An option with one takes the word after it even if that begins with a dash, so
/// that `--limit -1` fails for what is wrong with it.
enum WholeNumber {
  @Sendable
  static func parse<Number: FixedWidthInteger & UnsignedInteger>(_ text: String) throws -> Number {
    guard let number = Number(text) else {
      throw ValidationError("it must be a whole number from 0 to \(Number.max)")
    }
    return number
  }
}

/// The rule for keys.
enum KeyLength {
  static let rule = "a key has 1 to 4096 bytes"

  static func isValid(_ byteCount: Int) -> Bool { (1...4_096).contains(byteCount) }

  /// Returns the key if it is valid.
  static func validate(_ key: String) throws(ValidationError) -> String {
    guard isValid(key.utf8.count) else { throw ValidationError("it has \(key.utf8.count) bytes, but \(rule)") }
    return key
  }
}

// MARK: Arguments that several commands share

struct StoreArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The store's name.", valueName: "store"), completion: .custom(StoreNameCompletion.names))
  var name: String
}

struct StoreAndKeyArguments: ParsableArguments {
  @OptionGroup var store: StoreArgument

  @Argument(help: "The entry's key.", transform: KeyLength.validate)
  var key: String
}

/// The options of commands that can repeat their output.
struct WatchingOptions: ParsableArguments {
  @Flag(help: "Repeat the output until interrupted.")
  var watch = false

  @Option(
    help: ArgumentHelp("The pause between two outputs, with --watch. (default: 1s)", valueName: "time"),
    transform: { try DurationArgument($0) })
  private var interval: DurationArgument?

  func validate() throws {
    guard interval == nil || watch else { throw ValidationError("--interval requires --watch") }
  }

  var pause: Duration { interval?.duration ?? .seconds(1) }
}
