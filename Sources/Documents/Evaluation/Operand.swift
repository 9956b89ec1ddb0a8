/// A value that conditions compare with, ready to be compared with values in a document's text.
struct Operand: Sendable {
  private enum Kind: Sendable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    /// UTF-8, folded as the options ask.
    case string([UInt8])
    case tree(JSONValue)
  }

  private let kind: Kind
  private let options: Selector.StringOptions

  init(_ value: JSONValue, _ options: Selector.StringOptions = []) {
    self.options = options
    switch value {
    case .null: kind = .null
    case .bool(let value): kind = .bool(value)
    case .integer(let value): kind = .number(.integer(value))
    case .double(let value): kind = .number(.double(value))
    case .string(let value): kind = .string(options.folded(Array(value.utf8)))
    case .array, .object: kind = .tree(value)
    }
  }

  var isNull: Bool { if case .null = kind { true } else { false } }
  var isArray: Bool { if case .tree(.array) = kind { true } else { false } }

  private var rank: Int {
    switch kind {
    case .null: 0
    case .bool(let value): value ? 2 : 1
    case .number: 3
    case .string: 4
    case .tree(.array): 5
    case .tree: 6
    }
  }

  /// How a value stands to this one in the total order: negative if it comes before, zero if it is equal.
  @inline(__always)
  func order(of value: SourceValue, _ scanner: JSONScanner) -> Int {
    let (left, right) = (value.rank, rank)
    if left != right { return left - right }
    switch kind {
    case .null, .bool: return 0
    case .number(let number): return JSONNumber.order(value.number(scanner), number)
    case .string(let operand):
      return value.withText(scanner) { text in
        options.isEmpty ? text.order(operand.span) : options.folded(text.toArray()).span.order(operand.span)
      }
    case .tree(let operand):
      var tree = value.tree(scanner)
      if !options.isEmpty, case .array(let elements) = tree {
        // Options apply to the strings of an array that is compared as a whole.
        tree = .array(elements.map { options.folded($0) })
      }
      return JSONValue.order(tree, operand)
    }
  }
}

extension Selector.StringOptions {
  /// Text without what the options ignore.
  func folded(_ text: [UInt8]) -> [UInt8] {
    guard !isEmpty else { return text }
    var scalars = Array(String(decoding: text, as: UTF8.self).unicodeScalars)
    if contains(.ignoringDiacritics) { scalars = Diacritics.removed(from: scalars) }
    var output: [UInt8] = []
    for scalar in scalars {
      if contains(.ignoringCase) {
        output += Array(scalar.properties.lowercaseMapping.utf8)
      } else {
        output += Array(UTF8.encode(scalar)!)
      }
    }
    return output
  }

  func folded(_ value: JSONValue) -> JSONValue {
    guard case .string(let text) = value else { return value }
    return .string(String(decoding: folded(Array(text.utf8)), as: UTF8.self))
  }
}

extension Span<UInt8> {
  /// Negative, zero or positive, byte by byte: for UTF-8 the order of Unicode scalars.
  func order(_ other: Span<UInt8>) -> Int {
    for index in 0..<Swift.min(count, other.count) where self[index] != other[index] {
      return self[index] < other[index] ? -1 : 1
    }
    return count - other.count
  }

  func has(_ part: [UInt8], at offset: Int) -> Bool {
    guard offset >= 0, offset + part.count <= count else { return false }
    for index in part.indices where self[offset + index] != part[index] { return false }
    return true
  }

  func contains(_ part: [UInt8]) -> Bool {
    var offset = 0
    while offset + part.count <= count {
      if has(part, at: offset) { return true }
      offset += 1
    }
    return false
  }

  func toArray() -> [UInt8] { unsafe withUnsafeBufferPointer { unsafe Array($0) } }
}
