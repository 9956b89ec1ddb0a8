import Documents

/// The explanation of a find for people: what was planned and why, and the index that would help.
struct ExplanationText {
  private static let labelWidth = 12
  private static let maxRangeCount = 8

  private let store: String
  private let statistics: DocumentStatistics
  private var lines: [String] = []

  /// - Parameters:
  ///   - json: The explanation in the protocol's form.
  ///   - store: The store's name, for the command that creates an index.
  init(_ json: JSONValue, _ statistics: DocumentStatistics, store: String) {
    self.store = store
    self.statistics = statistics
    add("Selector", json["selector"]?.description ?? "{}")
    if let plan = json["plan"] {
      add("Plan", Self.title(plan))
      add(detailsOf: plan, depth: 1)
    }
    add("Examined", Self.examined(statistics))
    add(candidates: json["candidates"]?.array ?? [])
    if let suggestion = json["suggestion"] { add(suggestion: suggestion, candidates: json["candidates"]?.array ?? []) }
  }

  /// The lines, which may contain anything: see `EscapedText`.
  var text: String { lines.joined(separator: "\n") }

  private mutating func add(_ label: String, _ text: String) {
    lines.append(label + String(repeating: " ", count: max(1, Self.labelWidth - label.count)) + text)
  }

  private mutating func add(_ text: String, depth: Int) {
    add("", String(repeating: "  ", count: depth) + text)
  }

  private static func examined(_ statistics: DocumentStatistics) -> String {
    let time = HumanReadable.duration(nanoseconds: statistics.duration.wholeNanoseconds)
    return "\(count(statistics.examinedKeyCount, "key")) and "
      + "\(count(statistics.examinedDocumentCount, "document")) in \(time)"
  }

  private static func count(_ count: Int, _ noun: String) -> String {
    "\(HumanReadable.number(count)) \(noun)\(count == 1 ? "" : "s")"
  }

  // MARK: The plan

  private static func title(_ plan: JSONValue) -> String {
    var title =
      switch plan["kind"]?.string {
      case "scan": "all documents of the store"
      case "index": "index \(plan["index"]?.string ?? "")"
      case "ids": "the keys of the store"
      case "union": "the documents of any of"
      case "intersection": "the documents of all of"
      case "nothing": "nothing: no document can match"
      case let other: other ?? "unknown"
      }
    if plan["reversed"]?.bool == true { title += ", backward" }
    if plan["kind"] != "scan", let count = plan["estimatedKeys"]?.integer {
      title += " (about \(Self.count(Int(count), "key")))"
    }
    return title
  }

  private mutating func add(detailsOf plan: JSONValue, depth: Int) {
    let ranges = plan["ranges"]?.array ?? []
    for range in ranges.prefix(Self.maxRangeCount) { add(Self.text(ofRange: range), depth: depth) }
    let rangeCount = max(ranges.count, plan["rangeCount"]?.integer.map { Int(clamping: $0) } ?? 0)
    let restCount = rangeCount - min(ranges.count, Self.maxRangeCount)
    if restCount > 0 { add("… and \(Self.count(restCount, "more range"))", depth: depth) }
    for part in plan["parts"]?.array ?? [] {
      add(Self.title(part), depth: depth)
      add(detailsOf: part, depth: depth + 1)
    }
    guard depth == 1 else { return }
    if let abandoned = plan["insteadOf"] {
      add("instead of \(Self.title(abandoned)), where matches came later than expected", depth: depth)
    }
    if plan["ordered"]?.bool == true { add("in the order of the result, without sorting", depth: depth) }
    if let count = plan["estimatedGroups"]?.integer {
      add(
        "with one document of each group (about \(Self.count(Int(count), "group"))): the keys are counted", depth: depth
      )
    } else if plan["covered"]?.bool == true {
      add("without evaluating documents: the keys are enough", depth: depth)
    }
  }

  /// Returns the conditions of a range's fields, such as `name = "mike", age > 12 and < 20`.
  private static func text(ofRange range: JSONValue) -> String {
    guard let fields = range.object else { return range.cell }
    return fields.map { path, conditions in
      guard let conditions = conditions.object else { return "\(path) \(conditions.cell)" }
      let texts = conditions.map { text(ofCondition: $0.name, $0.value) }
      return "\(path) \(texts.isEmpty ? "any value" : texts.joined(separator: " and "))"
    }.joined(separator: ", ")
  }

  private static func text(ofCondition name: String, _ value: JSONValue) -> String {
    switch name {
    case "$eq": "= \(value)"
    case "$gt": "> \(value)"
    case "$gte": ">= \(value)"
    case "$lt": "< \(value)"
    case "$lte": "<= \(value)"
    case "$beginsWith": "begins with \(value)"
    case "$exists": value == true ? "exists" : "is missing"
    case "$type": "has the type \(value.cell)"
    default: "\(name) \(value.cell)"
    }
  }

  private mutating func add(candidates: [JSONValue]) {
    for (number, candidate) in candidates.enumerated() {
      let count = candidate["estimatedKeys"]?.integer.map { " (about \(Self.count(Int($0), "key")))" } ?? ""
      let name = candidate["index"]?.string ?? candidate["kind"]?.string ?? ""
      add(number == 0 ? "Not used" : "", "\(name)\(count): \(candidate["reason"]?.string ?? "")")
    }
  }

  // MARK: The index that would help

  private mutating func add(suggestion: JSONValue, candidates: [JSONValue]) {
    guard let json = suggestion["fields"], let fields = try? SortField.fields(json), !fields.isEmpty else { return }
    let name = Self.name(for: fields, besides: Set(candidates.compactMap { $0["index"]?.string }))
    let words = ["larder", "index", "create", store, name] + fields.map(\.argument)
    add("Would help", words.map(Self.quoted).joined(separator: " "))
  }

  /// Returns a name such as `by-pet-species-age`, which no existing index has.
  private static func name(for fields: [SortField], besides existing: Set<String>) -> String {
    let words = fields.flatMap { $0.path.names }.map { $0.filter { $0.isASCII && ($0.isLetter || $0.isNumber) } }
    let name = (["by"] + words.filter { !$0.isEmpty }).joined(separator: "-")
    let short = String(name.prefix(60))
    guard existing.contains(short) else { return short }
    return (2...).lazy.map { "\(short)-\($0)" }.first { !existing.contains($0) }!
  }

  /// Returns a word in the form in which it can be pasted into a shell and the console.
  private static func quoted(_ word: String) -> String {
    let isPlain = word.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || "0123456789_-.,:/@".unicodeScalars.contains($0)
    }
    return isPlain && !word.isEmpty ? word : CommandWords.quoted(word, with: "'")
  }
}
