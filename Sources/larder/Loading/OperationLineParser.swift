import Documents
import Larder

/// Parses lines of JSON into the operations of a batch. The member that names the operation has the key:
///
///     {"put":"apple","value":"red","expiresInMilliseconds":60000}
///     {"delete":"pear","ifRevision":7}
///     {"update":"mike12","set":{"$inc":{"age":1}},"create":true}
///     {"check":"plum","ifAbsent":true}
struct OperationLineParser {
  static let help = """
    A line is one of these objects, in which the member that names the operation has the key:
      {"put":KEY,"value"|"valueBase64"|"values"|"valuesBase64":…}, as in 'larder load', optionally with \
    "expiresInMilliseconds"
      {"delete":KEY}
      {"update":KEY,"set":UPDATE}, with an update as in 'larder update'; with "create":true, a key without an entry \
    counts as {}
      {"check":KEY}, which only has a condition
    A condition is "ifRevision":N, or "ifAbsent":true in a put or check.
    """

  private enum Kind: String, CaseIterable {
    case put, delete, update, check
  }

  private enum Member: String, CaseIterable {
    case expiry = "expiresInMilliseconds"
    case update = "set"
    case ifAbsent, ifRevision, create

    func belongs(to kind: Kind) -> Bool {
      switch self {
      case .expiry: kind == .put
      case .update, .create: kind == .update
      case .ifAbsent: kind == .put || kind == .check
      case .ifRevision: true
      }
    }
  }

  /// What the members of a line say.
  private struct Line {
    var operation: (kind: Kind, key: String)?
    var value: EntryValue?
    var expiry: Duration?
    var update: DocumentUpdate?
    var ifAbsent = false
    var ifRevision: UInt64?
    var create = false
    var members: [Member] = []
  }

  private var members = JSONMembers()

  /// Adds the operation of a line to a batch.
  mutating func parse(_ line: Span<UInt8>, into batch: inout WriteBatch) throws(LineError) {
    do throws(JSONError) { try members.read(line, limits: .envelope) } catch { throw LineError(error) }
    var parsed = Line()
    for member in members.all { try Self.read(member, of: line, into: &parsed) }
    guard let (kind, key) = parsed.operation else {
      throw LineError("the line has no operation: 'put', 'delete', 'update' or 'check' with the key")
    }
    for member in parsed.members where !member.belongs(to: kind) {
      throw LineError("the operation '\(kind.rawValue)' can't have the member '\(member.rawValue)'")
    }
    guard kind == .put || parsed.value == nil else {
      throw LineError("the operation '\(kind.rawValue)' can't have a value")
    }
    guard !parsed.ifAbsent || parsed.ifRevision == nil else {
      throw LineError("'ifAbsent' and 'ifRevision' can't be combined")
    }
    switch kind {
    case .put:
      guard let value = parsed.value else {
        throw LineError("the put has no 'value', 'valueBase64', 'values' or 'valuesBase64'")
      }
      let condition: WriteCondition = parsed.ifAbsent ? .absent : parsed.ifRevision.map { .revision($0) } ?? .always
      batch.put(Write(key, value, if: condition, expiresIn: parsed.expiry))
    case .delete: batch.delete(key, ifRevision: parsed.ifRevision)
    case .update:
      guard let update = parsed.update else { throw LineError("the update has no 'set'") }
      batch.update(key, update, ifRevision: parsed.ifRevision, orCreate: parsed.create)
    case .check:
      if parsed.ifAbsent {
        batch.checkAbsent(key)
      } else if let revision = parsed.ifRevision {
        batch.check(key, hasRevision: revision)
      } else {
        throw LineError("the check needs 'ifRevision', or 'ifAbsent' that is true")
      }
    }
  }

  private static func read(
    _ member: JSONMembers.Member, of line: Span<UInt8>, into parsed: inout Line
  ) throws(LineError) {
    let content = line.extracting(member.value)
    if let form = LineValue.form(named: line.extracting(member.name)) {
      guard parsed.value == nil else { throw LineError("the put has more than one value") }
      parsed.value = try LineValue.entryValue(content, form)
      return
    }
    let name = line.extracting(member.name).toString()
    if let kind = Kind(rawValue: name) {
      guard parsed.operation == nil else { throw LineError("the line has more than one operation") }
      parsed.operation = (kind, try LineValue.key(content))
      return
    }
    guard let field = Member(rawValue: name) else {
      throw LineError("an operation can't have the member \(line.extracting(member.quotedName).toString())")
    }
    guard !parsed.members.contains(field) else { throw LineError("the member '\(name)' occurs twice") }
    parsed.members.append(field)
    switch field {
    case .expiry: parsed.expiry = try LineValue.expiry(content)
    case .update:
      do throws(DocumentUpdateError) { parsed.update = try DocumentUpdate(parsing: content) } catch {
        throw LineError("bad update at \(error.path): \(error.reason)")
      }
    case .ifAbsent: parsed.ifAbsent = try boolean(content, name)
    case .ifRevision:
      guard let revision = UInt64(content.toString()) else { throw LineError("'ifRevision' is not a whole number") }
      parsed.ifRevision = revision
    case .create: parsed.create = try boolean(content, name)
    }
  }

  private static func boolean(_ content: Span<UInt8>, _ name: String) throws(LineError) -> Bool {
    if content.equals("true") { return true }
    guard content.equals("false") else { throw LineError("'\(name)' is neither true nor false") }
    return false
  }
}
