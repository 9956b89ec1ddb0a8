import Documents

/// What finding documents took, and where the next page starts, as `larder find --stats` prints it.
struct FindStatistics {
  private let statistics: DocumentStatistics
  private let bookmark: String?
  private let warnings: [String]

  init(_ statistics: DocumentStatistics, bookmark: String? = nil, warnings: [String] = []) {
    self.statistics = statistics
    self.bookmark = bookmark
    self.warnings = warnings
  }

  /// For people: one line without the bookmark.
  var text: String {
    let keys = statistics.examinedKeyCount
    let examined = (keys > 0 ? "\(keys) keys, " : "") + "\(statistics.examinedDocumentCount) documents"
    let time = HumanReadable.duration(nanoseconds: statistics.duration.wholeNanoseconds)
    return "examined \(examined), returned \(statistics.returnedDocumentCount), \(time)"
  }

  /// For programs: an object on one line.
  var json: JSONValue {
    var json: JSONValue = [
      "examinedKeys": .integer(Int64(statistics.examinedKeyCount)),
      "examinedDocuments": .integer(Int64(statistics.examinedDocumentCount)),
      "returned": .integer(Int64(statistics.returnedDocumentCount)),
      "nanoseconds": .integer(Int64(clamping: statistics.duration.wholeNanoseconds)),
    ]
    if let bookmark { json["bookmark"] = .string(bookmark) }
    if !warnings.isEmpty { json["warnings"] = .array(warnings.map { .string($0) }) }
    return json
  }
}

extension Duration {
  /// The duration in nanoseconds, rounded down; 0 if it is negative.
  var wholeNanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    return UInt64(clamping: seconds) &* 1_000_000_000 &+ UInt64(clamping: attoseconds / 1_000_000_000)
  }
}
