@testable import Documents

/// Reads arbitrary queries and finds documents in arbitrary text. A run passes if nothing traps, a query reads back
/// from its JSON, and a finder agrees with the selector alone and finds JSON objects only.
///
/// The first two bytes, little-endian, are the size of the query, which follows. The rest is the document.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSelectors(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 1 else { return 0 }
  let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
  let end = min(2 + Int(bytes[0]) + Int(bytes[1]) << 8, count)
  guard let text = String(validating: bytes[2..<end], as: UTF8.self),
    let query = try? DocumentQuery(parsing: text)
  else { return 0 }
  do throws(SelectorError) {
    check(try DocumentQuery(query.json) == query, "a query doesn't read back from its JSON")
    check(try DocumentQuery(parsing: query.description) == query, "a query doesn't read back from its text")
  } catch { fatalError("a query's JSON is refused: \(error)") }

  guard let selector = try? CompiledSelector(query.selector) else { return 0 }
  let document = Array(bytes[end...])
  for document in [Document(document), Document(document, id: "k", revision: 7)] {
    let isMatch = selector.matches(document)
    var unlimited = query
    (unlimited.skip, unlimited.limit, unlimited.bookmark) = (0, nil, nil)
    guard let found = try? [document, document].find(unlimited).documents else { fatalError("a query isn't run") }
    check(found.count == (isMatch ? 2 : 0), "a finder and its selector differ")
    for document in found {
      guard let value = try? document.value(), case .object = value else { fatalError("a result isn't an object") }
    }
    _ = try? [document, document].find(query)
  }
  return 0
}

private func check(_ condition: Bool, _ reason: String) {
  if !condition { fatalError(reason) }
}
