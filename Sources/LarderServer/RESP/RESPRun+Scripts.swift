import Storage
import Wire

/// The scripts that Larder knows.
extension RESPRun {
  mutating func evaluate(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let text = bytes.extracting(request.word(1, bytes))
    guard let keyCount = bytes.extracting(request.word(2, bytes)).decimalNumber else { throw .notAnInteger }
    guard keyCount >= 0 else { throw .error("ERR Number of keys can't be negative") }
    guard keyCount <= request.count - 3 else {
      throw .error("ERR Number of keys can't be greater than number of args")
    }
    let script: RESPScript
    if request.command == .evalsha {
      guard let known = client.scripts.script(text.toString()) else {
        throw .error("NOSCRIPT No matching script. Please use EVAL.")
      }
      script = known
    } else {
      guard let known = client.scripts.load(text.toArray())?.script else { throw Self.unknownScript }
      script = known
    }
    // As in Redis, a script is free to ignore further keys and words.
    guard keyCount > 0, request.count >= 3 + keyCount + script.argumentCount else {
      throw .error("ERR this script takes a key and \(script.argumentCount) more words")
    }
    try execute(script, request, bytes, arguments: 3 + keyCount, &map, &replies)
  }

  static let unknownScript = RESPFailure.error(
    "ERR Larder runs only the scripts of well-known locks and counters; use a transaction, SET IFEQ or DELIFEQ")

  /// - Parameter first: The number of the word that is the script's first argument.
  private mutating func execute(
    _ script: RESPScript, _ request: RESPRequest, _ bytes: RawSpan, arguments first: Int, _ map: inout EntryMap,
    _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(3, bytes))
    let argument = bytes.extracting(request.word(first, bytes))
    switch script {
    case .add, .addIfPresent:
      if script == .addIfPresent, entry(key, &map) == nil { return replies.bytes.appendRESPNull(version) }
      guard let number = argument.decimalNumber else { throw .notAnInteger }
      try add(number, to: key, &map, &replies)
    case .deleteIfEqual:
      guard try hasValue(argument, key, &map) else { return replies.bytes.appendRESP(0) }
      replies.bytes.appendRESP(try delete(key, &map) ? 1 : 0)
    case .expireIfEqual, .extendIfEqual:
      guard try hasValue(argument, key, &map), let entry = try string(key, &map) else {
        return replies.bytes.appendRESP(0)
      }
      var lifetime = bytes.extracting(request.word(first + 1, bytes)).decimalNumber
      if script == .extendIfEqual {
        guard entry.expiry != 0 else { return replies.bytes.appendRESP(0) }
        if bytes.extracting(request.word(first + 2, bytes)).decimalNumber == 0 {
          lifetime = lifetime.flatMap { added in
            let (sum, overflows) = added.addingReportingOverflow(Int(entry.expiry - now))
            return overflows ? nil : sum
          }
        }
      }
      guard let lifetime, lifetime <= Self.maxLifetime else { throw .notAnInteger }
      try replaceExpiry(of: entry, key, with: lifetime <= 0 ? 1 : now + UInt64(lifetime), &map)
      replies.bytes.appendRESP(1)
    }
  }

  /// Whether there is an entry with a value.
  private mutating func hasValue(
    _ value: RawSpan, _ key: RawSpan, _ map: inout EntryMap
  ) throws(RESPFailure) -> Bool {
    guard let entry = try string(key, &map) else { return false }
    return try withValue(of: entry) { $0.hasSameBytes(as: value) }
  }
}
