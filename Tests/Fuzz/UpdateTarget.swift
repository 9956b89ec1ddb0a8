@testable import Documents

/// Reads arbitrary updates and applies them to arbitrary text. A run passes if nothing traps, an update reads back from
/// its JSON, it is refused by what is no document, and what it makes of a document is a document within the limits, on
/// which setting the same fields again has no effect.
///
/// The first two bytes, little-endian, are the size of the update, which follows. The rest is the document.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzUpdates(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 1 else { return 0 }
  let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
  let end = min(2 + Int(bytes[0]) + Int(bytes[1]) << 8, count)
  guard let update = try? DocumentUpdate(parsing: Array(bytes[2..<end]).span) else { return 0 }
  do throws(DocumentUpdateError) {
    check(try DocumentUpdate(update.json) == update, "an update doesn't read back from its JSON")
    check(try DocumentUpdate(parsing: update.description) == update, "an update doesn't read back from its text")
  } catch { fatalError("an update's JSON is refused: \(error)") }

  let document = Array(bytes[end...])
  for limits in [JSONLimits(), JSONLimits(maxByteCount: 64, maxDepth: 3)] {
    guard let result = try? update.apply(to: document.span, limits: limits) else {
      check((try? update.change(of: document.span, limits: limits)) == nil, "a refused update makes a change")
      continue
    }
    check(JSON.isObject(document.span), "an update is applied to what is no document")
    check(JSON.isObject(result.span, limits: limits), "an update makes what is no document, or beyond the limits")
    let change = try? update.change(of: document.span, limits: limits)
    check(change == (result == document ? nil : result), "a change is not the result")
    checkAgain(update, on: result, limits)
  }
  return 0
}

/// Checks that a merge patch, or an update that only sets and removes fields, has no effect on its own result.
private func checkAgain(_ update: DocumentUpdate, on result: [UInt8], _ limits: JSONLimits) {
  guard let members = update.json.object else { fatalError("an update isn't an object") }
  let operators = members.map(\.name).filter { $0.hasPrefix("$") }
  guard operators.allSatisfy({ $0 == "$set" }) else { return }
  guard let again = try? update.apply(to: result.span, limits: limits) else {
    fatalError("an update is refused by its own result")
  }
  check(again == result, "an update changes its own result")
}

private func check(_ condition: Bool, _ reason: String) {
  if !condition { fatalError(reason) }
}
