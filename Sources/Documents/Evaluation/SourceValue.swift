/// A JSON value in the text of a document that has been scanned.
struct SourceValue {
  let range: Range<Int>
  /// nil for a member's name, whose range has its quotes.
  private let first: UInt8

  init(_ range: Range<Int>, _ scanner: JSONScanner) {
    self.range = range
    first = scanner[range.lowerBound]
  }

  var type: JSONType {
    switch first {
    case UInt8(ascii: "n"): .null
    case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
    case UInt8(ascii: "\""): .string
    case UInt8(ascii: "["): .array
    case UInt8(ascii: "{"): .object
    default: .number
    }
  }

  /// Its place among the types of the total order.
  var rank: Int {
    switch first {
    case UInt8(ascii: "n"): 0
    case UInt8(ascii: "f"): 1
    case UInt8(ascii: "t"): 2
    case UInt8(ascii: "\""): 4
    case UInt8(ascii: "["): 5
    case UInt8(ascii: "{"): 6
    default: 3
    }
  }

  func number(_ scanner: JSONScanner) -> JSONNumber { unsafe JSONNumber(scanner.bytes(range)) }

  /// Runs `body` with the text of a string.
  @inline(__always)
  func withText<Result>(_ scanner: JSONScanner, _ body: (Span<UInt8>) -> Result) -> Result {
    let source = range.lowerBound + 1..<range.upperBound - 1
    let bytes = unsafe scanner.bytes(source)
    guard unsafe bytes.contains(UInt8(ascii: "\\")) else { return unsafe body(bytes.span) }
    var text: [UInt8] = []
    JSONString.append(source, of: scanner, to: &text)
    return body(text.span)
  }

  func tree(_ scanner: JSONScanner) -> JSONValue { JSONValue(range, of: scanner) }

  /// The elements of an array; none for other values.
  func elements(_ scanner: JSONScanner) -> [SourceValue] {
    guard type == .array else { return [] }
    var (scanner, elements) = (scanner, [SourceValue]())
    scanner.move(to: range.lowerBound + 1)
    if scanner.take(UInt8(ascii: "]")) { return [] }
    repeat { elements.append(SourceValue(scanner.skipScannedValue(), scanner)) } while scanner.take(UInt8(ascii: ","))
    return elements
  }

  /// The names of an object's members, as strings; none for other values.
  func names(_ scanner: JSONScanner) -> [SourceValue] {
    guard type == .object else { return [] }
    var (scanner, names) = (scanner, [SourceValue]())
    scanner.move(to: range.lowerBound + 1)
    if scanner.take(UInt8(ascii: "}")) { return [] }
    repeat {
      names.append(SourceValue(scanner.skipScannedName(), scanner))
      _ = scanner.skipScannedValue()
    } while scanner.take(UInt8(ascii: ","))
    return names
  }
}

extension JSONScanner {
  /// Passes a value that has been scanned before.
  mutating func skipScannedValue() -> Range<Int> {
    do throws(Failure) { return try skipValue() } catch { preconditionFailure("the value was scanned before") }
  }

  /// Passes a member's name that has been scanned before, and the colon.
  /// - Returns: The name in its quotes.
  mutating func skipScannedName() -> Range<Int> {
    do throws(Failure) {
      let name = try takeName().name
      return name.lowerBound - 1..<name.upperBound + 1
    } catch { preconditionFailure("the name was scanned before") }
  }
}

extension JSONValue {
  /// A value that was scanned before.
  init(_ range: Range<Int>, of scanner: JSONScanner) {
    var scanner = scanner
    scanner.move(to: range.lowerBound)
    do throws(JSONScanner.Failure) {
      self = try Self.parse(&scanner, depth: 0, maxDepth: JSONLimits.deepest)
    } catch { preconditionFailure("the value was scanned before") }
  }
}
