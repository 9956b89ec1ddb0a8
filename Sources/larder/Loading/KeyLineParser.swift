import Documents
import Larder

/// Parses lines of keys: a line that begins with `{` is a JSON object with the member `key`, as other commands print it;
/// any other line is a key.
struct KeyLineParser {
  /// The members of the current line.
  private var members = JSONMembers()

  /// Returns the key of a line; nil if the line is blank.
  mutating func parse(_ line: Span<UInt8>) throws(LineError) -> String? {
    if line.isBlank { return nil }
    let key = line[0] == UInt8(ascii: "{") ? try object(line) : String(validating: line.toArray(), as: UTF8.self)
    guard let key else { throw LineError("the key is not valid UTF-8") }
    guard KeyLength.isValid(key.utf8.count) else {
      throw LineError("the key has \(key.utf8.count) bytes, but \(KeyLength.rule)")
    }
    return key
  }

  private mutating func object(_ line: Span<UInt8>) throws(LineError) -> String {
    do throws(JSONError) { try members.read(line, limits: .envelope) } catch { throw LineError(error) }
    for member in members.all where line.extracting(member.name).equals("key") {
      return try LineValue.key(line.extracting(member.value))
    }
    throw LineError("the object has no member 'key'")
  }
}
