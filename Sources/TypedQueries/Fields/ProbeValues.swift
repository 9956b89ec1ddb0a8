import Documents
import FoundationEssentials

/// The values that a type is decoded from in a probe, by their coding paths. Each value is one of some candidates.
struct ProbeValues {
  /// The candidate of each value, as an index. A value that isn't here is its first candidate.
  private var choices: [String: Int] = [:]
  /// The number of candidates of each value that was decoded.
  private var counts: [String: Int] = [:]
  /// The values that were decoded, in this order.
  private(set) var paths: [String] = []
  /// The values that could be nil, in the order of decoding.
  private(set) var optionalPaths: [String] = []
  private var knownOptionalPaths: Set<String> = []
  /// The value that is nil; the others aren't.
  private var nilPath: String?
  /// The number of steps, such as decoding a value, until the type counts as one that refuses the values.
  private(set) var remainingCount = 20_000

  /// Choosing stops beyond so many values: the others are their first candidates.
  private static let maxPathCount = 300

  struct Exhausted: Error {}

  /// Returns the chosen one of some candidates.
  mutating func choose<Value>(_ candidates: [Value], at path: String) throws -> Value {
    try spend()
    guard !candidates.isEmpty else { throw Exhausted() }
    if counts[path] == nil, paths.count < Self.maxPathCount { paths.append(path) }
    counts[path] = candidates.count
    return candidates[min(choices[path] ?? 0, candidates.count - 1)]
  }

  /// Chooses the next candidate of a value. Returns whether there is one.
  mutating func advance(_ path: String) -> Bool {
    let next = (choices[path] ?? 0) + 1
    guard next < counts[path] ?? 0 else { return false }
    choices[path] = next
    return true
  }

  /// Counts a step.
  mutating func spend() throws {
    remainingCount -= 1
    guard remainingCount > 0 else { throw Exhausted() }
  }

  /// Returns whether a value is nil.
  mutating func isNil(_ path: String) throws -> Bool {
    try spend()
    if optionalPaths.count < Self.maxPathCount, knownOptionalPaths.insert(path).inserted { optionalPaths.append(path) }
    return path == nilPath
  }

  /// Makes a value nil.
  mutating func makeNil(_ path: String) { nilPath = path }

  /// Chooses what was chosen before.
  mutating func restoreChoices(of earlier: ProbeValues) { choices = earlier.choices }

  /// Chooses the same candidate of all values from a position of `paths` on. Returns whether one of them has it.
  mutating func choose(_ index: Int, from position: Int) -> Bool {
    var hasCandidate = false
    for path in paths[min(position, paths.count)...] {
      choices[path] = index
      if index < counts[path] ?? 0 { hasCandidate = true }
    }
    return hasCandidate
  }
}

/// The candidates of values by type. The first ones differ in everything that a computed property could ignore: case,
/// white space, length, sign and magnitude. The others are what types with a form accept.
enum ProbeCandidates {
  static let strings =
    [" Ab 1é-Zz ", "Ño x\n2", String(repeating: "Long Text ", count: 200), ""]
    + ["a", "b", "1", "2", "http://a.example/A", "http://b.example/B"]
    + ["00000000-0000-0000-0000-00000000000A", "00000000-0000-0000-0000-00000000000B"]
    + ["2001-02-03T04:05:06Z", "2002-03-04T05:06:07Z", "2001-02-03", "2002-03-04", "04:05:06", "05:06:07"]
    + ["127.0.0.1", "10.0.0.2", "a@a.example", "b@b.example", "1.2.3", "2.3.4", "en", "de", "EUR", "USD", "#A0B0C0"]
  static let booleans = [true, false]
  static let doubles = [1.5, -2.25, 1e9 + 0.5, 0, 0.25, 0.75, 1, 2]
  static let dates = [86_400.5, -1e8, 1e9 + 0.25].map(Date.init(timeIntervalSinceReferenceDate:))
  static let data = [Data([1, 0xFF]), Data([2]), Data(repeating: 3, count: 2_000)]
  static let urls = ["http://a.example/A?b#c", "http://b.example/B", "file:///c"].compactMap(URL.init(string:))
  static let uuids = strings.compactMap(UUID.init(uuidString:))
  static let decimals: [Decimal] = [1.5, -2.25, 1_000_000_000.5, 0]
  static let json: [JSONValue] = ["Ab 1é", 3, .bool(true), .array([]), .object([:])]
  static let calendars = [Calendar(identifier: .gregorian), Calendar(identifier: .iso8601)]
  static let timeZones = [0, 3_600].compactMap(TimeZone.init(secondsFromGMT:))
  /// Sets of 1 and 2, of 7, and of nothing, as JSON.
  static let indexSets = [
    #"{"indexes":[{"location":1,"length":2}]}"#, #"{"indexes":[{"location":7,"length":1}]}"#, #"{"indexes":[]}"#,
  ]
  static let urlComponents = urls.compactMap { URLComponents(url: $0, resolvingAgainstBaseURL: false) }

  static func integers<Value: FixedWidthInteger>(_ type: Value.Type) -> [Value] {
    [3, -7, 1_000_003, 0, 1, 2, 100].compactMap { Value(exactly: $0) }
  }

  static func floats<Value: BinaryFloatingPoint>(_ type: Value.Type) -> [Value] { doubles.map { Value($0) } }
}
