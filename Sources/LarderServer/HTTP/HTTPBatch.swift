import Basics
import Documents
import Wire

/// Requests with any number of operations, which become one commit.
extension HTTPRequest {
  private static let operationNames = ["put", "delete", "update", "check"]
  private static let memberNames =
    operationNames + ["value", "valueBase64", "set", "create", "expiresInMilliseconds", "ifAbsent", "ifRevision"]

  /// Returns an apply, and the body that it has in Larder's own protocol.
  func applyCommand(_ bytes: RawSpan) throws(CommandFailure) -> (Command, [UInt8]) {
    let operations = try elements("operations", bytes)
    var buffer = ByteBuffer()
    buffer.append(UInt32(operations.count))
    for (index, operation) in operations.enumerated() {
      do throws(CommandFailure) { try Self.append(operation, of: bytes, to: &buffer) } catch {
        throw CommandFailure(error.code, "operation \(index + 1): \(error.message)")
      }
    }
    return (.apply(count: operations.count), buffer.toArray())
  }

  /// Returns the deletion of some keys, and the body that it has in Larder's own protocol.
  func deletionCommand(_ bytes: RawSpan) throws(CommandFailure) -> (Command, [UInt8]) {
    let elements = try elements("keys", bytes)
    var buffer = ByteBuffer()
    buffer.append(UInt32(elements.count))
    for element in elements {
      guard let key = JSONString.bytes(of: Span(_bytes: bytes.extracting(element))) else {
        throw CommandFailure(.illegalArgument, "'keys' is an array of strings")
      }
      try Self.checkSizes(key)
      buffer.append(UInt16(key.count))
      buffer.append(key)
    }
    let body = buffer.toArray()
    guard let keys = unsafe KeyList(body.span.bytes) else { preconditionFailure("the body is valid") }
    return (.deleteMany(keys), body)
  }

  /// Returns where the elements of an array are that is the only member of the body.
  private func elements(_ name: String, _ bytes: RawSpan) throws(CommandFailure) -> [Range<Int>] {
    let source = try HTTPBody(self, bytes, names: [name]).source(name)
    do throws(JSONError) {
      return try JSON.elements(of: Span(_bytes: bytes.extracting(source))).map { element in
        source.lowerBound + element.lowerBound..<source.lowerBound + element.upperBound
      }
    } catch { throw CommandFailure(.illegalArgument, "the body has an array, '\(name)'") }
  }

  /// Appends an operation to an apply of Larder's own protocol.
  private static func append(
    _ source: Range<Int>, of bytes: RawSpan, to buffer: inout ByteBuffer
  ) throws(CommandFailure) {
    let operation = try HTTPBody(source, of: bytes, names: memberNames)
    let names = operationNames.filter(operation.has)
    guard names.count == 1, let name = names.first, let key = try operation.string(name).map({ Array($0.utf8) })
    else {
      throw CommandFailure(.illegalArgument, "one of \(operationNames.joined(separator: ", ")) names the key")
    }
    try checkSizes(key)
    let kind: ApplyRecord.Kind =
      switch name {
      case "put": .putSingle
      case "delete": .delete
      case "update": .update
      default: .check
      }
    let value: [UInt8]? = kind == .update ? operation.value("set") : try operation.entryValue
    guard (value != nil) == (kind == .putSingle || kind == .update) else {
      throw CommandFailure(
        .illegalArgument, "a put has 'value' or 'valueBase64', an update 'set', and other operations have neither")
    }
    let content = value ?? []
    unsafe buffer.appendApply(
      kind, expiry: UInt64(try operation.number("expiresInMilliseconds", in: 1...Int.max) ?? 0),
      ifAbsent: try operation.flag("ifAbsent"), ifRevision: try operation.revision,
      creates: try operation.flag("create"),
      key: key.span.bytes, value: content.span.bytes)
  }
}

extension HTTPBody {
  /// The value that an entry is to have: the text of a string, or any other JSON as it is; nil if there is none.
  fileprivate var entryValue: [UInt8]? {
    get throws(CommandFailure) {
      guard let text = try string("valueBase64") else {
        return value("value").map { JSONString.bytes(of: $0.span) ?? $0 }
      }
      guard !has("value"), let bytes = Base64.decode(Array(text.utf8)) else {
        throw CommandFailure(.illegalArgument, "'valueBase64' is Base64 with padding, and there is no 'value'")
      }
      return bytes
    }
  }

  /// The revision that the entry must have; nil for any.
  fileprivate var revision: UInt64? {
    get throws(CommandFailure) {
      guard let text = try string("ifRevision") else { return nil }
      guard let revision = UInt64(digits: text[...]) else {
        throw CommandFailure(.illegalArgument, "'ifRevision' is a revision as a string")
      }
      return revision
    }
  }
}
