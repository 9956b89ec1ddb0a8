@testable import Documents

/// Compiles arbitrary patterns and matches arbitrary text. A run passes if nothing traps, matching ends, and the shortcuts
/// for literals lead to the same verdict as the matcher alone.
///
/// The first byte is the size of the pattern, which follows. The rest is the text.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRegularExpressions(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 0 else { return 0 }
  let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
  let end = min(1 + Int(bytes[0]), count)
  guard let pattern = String(validating: bytes[1..<end], as: UTF8.self) else { return 0 }
  let text = Array(bytes[end...])
  for options: RegularExpression.Options in [[], .ignoringCase] {
    guard let expression = try? RegularExpression(pattern, options: options) else { continue }
    let verdict = expression.matches(text.span)
    if let prefix = expression.anchoredLiteralPrefix, verdict {
      check(text.starts(with: prefix.utf8), "a match lacks the prefix")
    }
    // An alternation has no literal, but the same meaning. It can exceed a limit or repeat a group's name.
    guard String(validating: text, as: UTF8.self) != nil,
      let plain = try? RegularExpression("(?:\(pattern)|\(pattern))", options: options)
    else { continue }
    check(plain.matches(text.span) == verdict, "a shortcut changes the verdict")
  }
  return 0
}

private func check(_ condition: Bool, _ reason: String) {
  if !condition { fatalError(reason) }
}
