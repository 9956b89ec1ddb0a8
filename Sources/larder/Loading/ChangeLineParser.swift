import Documents
import Larder

/// Parses lines of JSON that `ChangeLine` formats: the changes of a store.
struct ChangeLineParser {
  enum Line {
    case put(Write)
    case delete(String)
    case deleteAll
    /// All changes up to the revision precede the line.
    case end
  }

  private enum Member: String {
    case key, revision, deleted, deletedAll, more, through
    case expiry = "expiresInMilliseconds"
    case expiryTime = "expiresAtMilliseconds"
  }

  /// What the members of a line say.
  private struct Parts {
    var key: String?
    var value: EntryValue?
    var expiry = LineExpiry()
    var revision: UInt64?
    var through: UInt64?
    var isDeleted = false
    var isDeletedAll = false
    var hasMore = false
  }

  private var members = JSONMembers()

  /// Returns whether a line is a change, and not an operation of `OperationLineParser`, of which no member has one of
  /// these names.
  mutating func isChange(_ line: Span<UInt8>) -> Bool {
    do throws(JSONError) { try members.read(line, limits: .envelope) } catch { return false }
    return members.all.contains { member in
      let name = line.extracting(member.name)
      return name.equals("key") || name.equals("deletedAll") || name.equals("through")
    }
  }

  /// - Returns: The change, the revision of its commit, and whether further changes of that commit follow.
  mutating func parse(_ line: Span<UInt8>) throws(LineError) -> (change: Line, revision: UInt64, hasMore: Bool) {
    do throws(JSONError) { try members.read(line, limits: .envelope) } catch { throw LineError(error) }
    var parts = Parts()
    for member in members.all { try Self.read(member, of: line, into: &parts) }
    if let through = parts.through {
      guard members.all.count == 1 else { throw LineError("'through' must be the only member of its line") }
      return (.end, through, false)
    }
    guard let revision = parts.revision else { throw LineError("the change has no 'revision'") }
    return (try Self.change(parts), revision, parts.hasMore)
  }

  private static func change(_ parts: Parts) throws(LineError) -> Line {
    if parts.isDeletedAll {
      guard parts.key == nil, parts.value == nil, !parts.isDeleted else {
        throw LineError("the deletion of all entries can't have a key or a value")
      }
      return .deleteAll
    }
    guard let key = parts.key else { throw LineError("the change has no 'key'") }
    if parts.isDeleted {
      guard parts.value == nil else { throw LineError("a deletion can't have a value") }
      return .delete(key)
    }
    guard let value = parts.value else {
      throw LineError(
        "the change has no value and is not a deletion; 'larder watch' prints values unless --keys-only is given")
    }
    return .put(Write(key, value, expiresIn: parts.expiry.remaining))
  }

  private static func read(
    _ member: JSONMembers.Member, of line: Span<UInt8>, into parts: inout Parts
  ) throws(LineError) {
    let content = line.extracting(member.value)
    if let form = LineValue.form(named: line.extracting(member.name)) {
      guard parts.value == nil else { throw LineError("the change has more than one value") }
      parts.value = try LineValue.entryValue(content, form)
      return
    }
    guard let name = Member(rawValue: line.extracting(member.name).toString()) else {
      throw LineError("a change can't have the member \(line.extracting(member.quotedName).toString())")
    }
    switch name {
    case .key: parts.key = try LineValue.key(content)
    case .expiry: try parts.expiry.readDuration(content)
    case .expiryTime: try parts.expiry.readTime(content)
    case .revision: parts.revision = try revision(content, name)
    case .through: parts.through = try revision(content, name)
    case .deleted: parts.isDeleted = try isTrue(content, name)
    case .deletedAll: parts.isDeletedAll = try isTrue(content, name)
    case .more: parts.hasMore = try isTrue(content, name)
    }
  }

  private static func revision(_ content: Span<UInt8>, _ name: Member) throws(LineError) -> UInt64 {
    guard let revision = UInt64(content.toString()), revision <= UInt64(Int64.max) else {
      throw LineError("'\(name.rawValue)' is not a whole number below 2^63")
    }
    return revision
  }

  private static func isTrue(_ content: Span<UInt8>, _ name: Member) throws(LineError) -> Bool {
    guard content.equals("true") else { throw LineError("'\(name.rawValue)' is not true") }
    return true
  }
}
