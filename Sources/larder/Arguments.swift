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
      let rule = "a duration is a whole number and a unit, such as 500ms, 5s, 2m or 1h"
      let meant = digits.isEmpty ? nil : Self.unit(like: text.dropFirst(digits.count)).map { digits + $0 }
      throw ValidationError(rule + (meant.map { "; did you mean \($0)?" } ?? ""))
    }
    let (milliseconds, overflow) = count.multipliedReportingOverflow(by: unit)
    guard !overflow, Self.range.contains(milliseconds) else {
      throw ValidationError("a duration is from 1 ms to 2^53 ms")
    }
    self.milliseconds = milliseconds
  }

  /// Returns the unit that another way to write it means.
  private static func unit(like text: Substring) -> String? {
    switch text.drop(while: { $0 == " " }).lowercased() {
    case "", "s", "sec", "secs", "second", "seconds": "s"
    case "ms", "msec", "millis", "millisecond", "milliseconds": "ms"
    case "m", "min", "mins", "minute", "minutes": "m"
    case "h", "hr", "hrs", "hour", "hours": "h"
    default: nil
    }
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

  static let range = 1...4_096

  static func isValid(_ byteCount: Int) -> Bool { range.contains(byteCount) }

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

/// The keys of a command, as arguments or from a file.
struct KeysArguments: ParsableArguments {
  /// The name of the argument. `CommandLinePosition` recognizes the keys of a long command line by it.
  static let argumentName = "keys"

  /// The keys that `CommandLinePosition.separatingKeys` has taken out of the command line.
  @TaskLocal static var separated: [String] = []

  /// The maximum number of keys from a file that are in one request.
  static let maxRequestCount = 10_000
  /// The maximum size of the keys from a file that are in one request, unless it is one key.
  private static let maxRequestByteCount = 1 << 20

  @Argument(help: ArgumentHelp("The entries' keys.", valueName: Self.argumentName), transform: KeyLength.validate)
  private var keys: [String] = []

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Read the keys from a file, or from standard input if it is -: one per line, or lines of JSON with a \"key\".",
      valueName: "file"),
    completion: .file())
  private var keysFrom: String?

  var isEmpty: Bool { keys.isEmpty && keysFrom == nil }

  func validate() throws {
    guard keys.isEmpty || keysFrom == nil else { throw ValidationError("keys and --keys-from can't be combined") }
  }

  /// - Parameter alternatives: The options that can replace the keys, such as `, or --all`.
  func requireKeys(or alternatives: String = "") throws(ValidationError) {
    guard !isEmpty else {
      throw ValidationError("Missing expected argument '<\(Self.argumentName)> ...', or --keys-from\(alternatives)")
    }
  }

  /// Returns the keys of each request to send: the arguments are one request, and keys from a file one or more.
  func requests() async throws -> [[String]] {
    guard let keysFrom else { return [keys + Self.separated] }
    let keys = try await Self.keys(from: InputFile(path: keysFrom))
    var requests: [[String]] = []
    var byteCount = 0
    for key in keys {
      byteCount += key.utf8.count
      if let count = requests.last?.count, count < Self.maxRequestCount, byteCount <= Self.maxRequestByteCount {
        requests[requests.count - 1].append(key)
      } else {
        requests.append([key])
        byteCount = key.utf8.count
      }
    }
    return requests
  }

  /// Runs on the main thread, which may block on the input.
  @MainActor
  private static func keys(from input: consuming InputFile) throws -> [String] {
    var lines = LineReader(input)
    var parser = KeyLineParser()
    var keys: [String] = []
    do {
      while true {
        guard let line = lines.next() else {
          if try lines.fill() { continue } else { return keys }
        }
        if let key = try parser.parse(lines.buffer.span.extracting(line)) { keys.append(key) }
      }
    } catch let error as LineError {
      throw CommandFailure(.usage, "line \(lines.number): \(error); nothing was sent; correct the line and try again")
    }
  }
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
