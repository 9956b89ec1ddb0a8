import Documents
import TypedQueries

/// Reads arbitrary raw predicates and evaluates them on arbitrary text. A run passes if nothing traps, the offset of an
/// error is in the text, and a predicate's selector reads back from its JSON and agrees with its complement.
///
/// The first two bytes, little-endian, are the size of the predicate, which follows. The rest is the document.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPredicates(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 1 else { return 0 }
  let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
  let end = min(2 + Int(bytes[0]) + Int(bytes[1]) << 8, count)
  guard let text = String(validating: bytes[2..<end], as: UTF8.self) else { return 0 }
  do {
    let selector = try Selector(predicate: text, "x", [1, 2])
    check(try Selector(selector.json) == selector, "a selector doesn't read back from its JSON")
    let document = Document(Array(bytes[end...]))
    let isMatch = try CompiledSelector(selector).matches(document)
    let isComplement = try CompiledSelector(!selector).matches(document)
    let isObject = (try? document.value()) != nil
    check(isObject ? isMatch != isComplement : !isMatch && !isComplement, "a predicate and its complement agree")
  } catch let error as PredicateSyntaxError {
    check((0...text.utf8.count).contains(error.offset), "an error is outside of the text")
  } catch {
    check(error is FilterError || error is SelectorError, "an unknown error: \(error)")
  }
  return 0
}

private func check(_ condition: Bool, _ reason: String) {
  if !condition { fatalError(reason) }
}
