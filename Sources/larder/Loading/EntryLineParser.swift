import Documents
import Larder

/// Makes writes of the lines of a file.
protocol EntryParser: Sendable {
  /// A Boolean value that indicates whether the next line has names that the lines after it need.
  var needsNames: Bool { get }
  /// A Boolean value that indicates whether the next line continues an entry.
  var isInsideEntry: Bool { get }

  /// Returns the write of the entry that a line ends; nil if it ends none.
  mutating func write(of line: Span<UInt8>) throws(LineError) -> Write?
}

extension EntryLineParser: EntryParser {
  var needsNames: Bool { false }
  var isInsideEntry: Bool { false }

  mutating func write(of line: Span<UInt8>) throws(LineError) -> Write? { try parse(line) }
}

/// Parses lines of JSON into writes: lines as `EntryLine` formats them, or any objects, where one member is the key and
/// the whole line is the value.
struct EntryLineParser {
  /// The name of the member that contains the key; nil for lines of `EntryLine`.
  private let keyField: [UInt8]?
  /// The members of the current line.
  private var members = JSONMembers()

  init(keyField: String?) {
    self.keyField = keyField.map { Array($0.utf8) }
  }

  mutating func parse(_ line: Span<UInt8>) throws(LineError) -> Write {
    do throws(JSONError) { try members.read(line, limits: .envelope) } catch {
      throw LineError.isArray(line) ? .array : LineError(error)
    }
    if let keyField { return try object(line, keyField) }
    return try entry(line)
  }

  // MARK: Any object

  private func object(_ line: Span<UInt8>, _ keyField: [UInt8]) throws(LineError) -> Write {
    var key: Range<Int>?
    for member in members.all where isNamed(keyField, member, in: line) {
      guard key == nil else { throw LineError("the member '\(text(keyField))' occurs twice") }
      key = member.value
    }
    guard let key else { throw LineError("there is no member '\(text(keyField))'") }
    return Write(try LineValue.key(line.extracting(key), allowsIntegers: true), line.toArray())
  }

  private func isNamed(_ name: [UInt8], _ member: JSONMembers.Member, in line: Span<UInt8>) -> Bool {
    if !member.nameHasEscapes { return line.extracting(member.name).equals(name) }
    return JSONString.bytes(of: line.extracting(member.quotedName)) == name
  }

  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  // MARK: An entry's line

  private enum Field {
    case key, expiry, expiryTime, revision
    case value(LineValue.Form)
  }

  private func entry(_ line: Span<UInt8>) throws(LineError) -> Write {
    var key: String?
    var value: EntryValue?
    var expiry = LineExpiry()
    for member in members.all {
      let content = line.extracting(member.value)
      switch try field(member, in: line) {
      case .key:
        guard key == nil else { throw LineError("the member 'key' occurs twice") }
        key = try LineValue.key(content)
      case .expiry: try expiry.readDuration(content)
      case .expiryTime: try expiry.readTime(content)
      case .revision: break
      case .value(let form):
        guard value == nil else { throw LineError("the entry has more than one value") }
        value = try LineValue.entryValue(content, form)
      }
    }
    guard let key else { throw LineError("the entry has no 'key'; use --key FIELD to load other objects") }
    guard let value else { throw LineError("the entry has no 'value', 'valueBase64', 'values' or 'valuesBase64'") }
    return Write(key, value, expiresIn: expiry.remaining)
  }

  private func field(_ member: JSONMembers.Member, in line: Span<UInt8>) throws(LineError) -> Field {
    let name = line.extracting(member.name)
    if name.equals("key") { return .key }
    if name.equals("revision") { return .revision }
    if name.equals("expiresInMilliseconds") { return .expiry }
    if name.equals("expiresAtMilliseconds") { return .expiryTime }
    if let form = LineValue.form(named: name) { return .value(form) }
    throw LineError(
      "an entry can't have the member \(line.extracting(member.quotedName).toString()); "
        + "use --key FIELD to load other objects")
  }
}

/// Why a line can't be loaded.
struct LineError: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ reason: String) { description = reason }

  init(_ error: JSONError) { description = "\(error.reason), at column \(error.column)" }

  /// The error for a JSON array in place of lines.
  fileprivate static let array = LineError(
    "it begins a JSON array, but each line must be an object of its own: \"jq -c '.[]' FILE\" prints such lines")

  fileprivate static func isArray(_ line: Span<UInt8>) -> Bool {
    for index in line.indices where line[index] != UInt8(ascii: " ") && line[index] != UInt8(ascii: "\t") {
      return line[index] == UInt8(ascii: "[")
    }
    return false
  }
}
