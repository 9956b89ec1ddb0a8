@testable import Documents

/// Reads arbitrary bytes as JSON.
///
/// A run passes if nothing traps, validating and parsing throw the same error or none, the parts of the text are those of
/// the tree, and the tree is the same after writing and reading.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSON(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = unsafe Span(_unsafeStart: start, count: count)
  _ = read(text, limits: JSONLimits(maxByteCount: 100, maxDepth: 2))
  guard let value = read(text, limits: JSONLimits()) else { return 0 }
  checkParts(of: value, in: text)
  let encoded = value.encoded()
  guard let again = read(encoded.span, limits: JSONLimits()) else { fatalError("what was written is not JSON") }
  check(again == value, "reading what was written gives another value")
  check(again.encoded() == encoded, "writing a value again gives another text")
  return 0
}

/// Reads text in every way, which must agree. Returns nil if it is not JSON.
private func read(_ text: Span<UInt8>, limits: JSONLimits) -> JSONValue? {
  var validation: JSONError?
  do throws(JSONError) { try JSON.validate(text, limits: limits) } catch { validation = error }
  let value: JSONValue
  do throws(JSONError) { value = try JSONValue(parsing: text, limits: limits) } catch {
    check(error == validation, "validating says \(String(describing: validation)), parsing says \(error)")
    check(!JSON.isObject(text, limits: limits), "an invalid text is an object")
    check(error.expected == .lessText || error.offset <= text.count, "an error is outside of the text")
    check(error.line >= 1 && error.column >= 1 && error.column <= error.offset + 1, "a place is impossible: \(error)")
    return nil
  }
  check(validation == nil, "parsing succeeds, but validating says \(String(describing: validation))")
  check(JSON.isObject(text, limits: limits) == (value.object != nil), "a value has two kinds")
  return value
}

/// Checks that the places of members, elements and strings contain what the tree contains.
private func checkParts(of value: JSONValue, in text: Span<UInt8>) {
  var members = JSONMembers()
  let isObject: Bool
  do throws(JSONError) {
    try members.read(text)
    isObject = true
  } catch { isObject = false }
  check(isObject == (value.object != nil), "members are found in something else than an object")
  if let object = value.object {
    var found = JSONObject()
    for member in members.all {
      guard let name = JSONString.bytes(of: text.extracting(member.quotedName)),
        let value = try? JSONValue(parsing: text.extracting(member.value))
      else { fatalError("a member is not JSON") }
      found[String(decoding: name, as: UTF8.self)] = value
    }
    check(found == object, "the members are others")
  }
  let elements = try? JSON.elements(of: text)
  check((elements != nil) == (value.array != nil), "elements are found in something else than an array")
  if let elements, let array = value.array {
    check(elements.count == array.count, "there are more or fewer elements")
    for (range, element) in zip(elements, array) {
      check((try? JSONValue(parsing: text.extracting(range))) == element, "an element is another")
    }
  }
  if let string = JSONString.bytes(of: text) {
    check(value.string.map { Array($0.utf8) } == string, "the string is another")
  }
}

private func check(_ condition: Bool, _ reason: @autoclosure () -> String) {
  if !condition { fatalError(reason()) }
}
