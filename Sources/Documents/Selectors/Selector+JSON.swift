extension Selector {
  /// Creates a selector from JSON text.
  /// - Throws: `SelectorError`, which names the place in the selector and the reason. For text that isn't JSON, the
  ///   reason has line and column.
  /// - Complexity: O(*n* log *n*).
  public init(parsing text: Span<UInt8>) throws(SelectorError) {
    let json = try Self.json(parsing: text)
    try self.init(json)
  }

  /// Reads JSON within the limits of a selector's text.
  /// - Parameter part: What the text is, for messages.
  static func json(
    parsing text: Span<UInt8>, of part: String = "a selector"
  ) throws(SelectorError) -> JSONValue {
    let limits = JSONLimits(maxByteCount: SelectorParser.maxByteCount, maxDepth: SelectorParser.maxTextDepth)
    do throws(JSONError) {
      return try JSONValue(parsingInstruction: text, limits: limits)
    } catch {
      switch error.expected {
      case .lessText: throw SelectorError(.tooLarge, "\(part) has up to 1 MiB of text")
      case .lessNesting: throw SelectorError(.tooDeep, "\(part) can't be nested so deeply: \(error)")
      default: throw SelectorError(.notJSON, "\(part) is JSON: \(error)")
      }
    }
  }

  /// Creates a selector from JSON text; see `init(parsing:)` for bytes.
  /// - Throws: `SelectorError`, which names the place in the selector and the reason.
  public init(parsing text: String) throws(SelectorError) { try self.init(parsing: Array(text.utf8).span) }

  /// Creates a selector from a JSON value. The order of an object's members doesn't matter.
  /// - Throws: `SelectorError`, which names the place in the selector and the reason.
  public init(_ json: JSONValue) throws(SelectorError) { try self.init(json, at: .root) }

  /// - Parameter place: The place of the selector in a larger JSON value, for messages.
  init(_ json: JSONValue, at place: JSONPath) throws(SelectorError) {
    self.init(parsed: try SelectorParser.parse(json, at: place))
  }

  /// The selector as JSON, in a normal form from which `init(_:)` creates an equal selector.
  ///
  /// The normal form has no superfluous nesting. Conditions that all have to hold are members of one object where their
  /// names are in ascending order, and clauses of `$and` elsewhere.
  public var json: JSONValue { .object(SelectorPrinter.object(tree)) }
}

extension Selector: CustomStringConvertible {
  /// The text of `json`.
  public var description: String { json.description }
}

extension Selector: Codable {
  /// Decodes a selector from its JSON.
  /// - Throws: `DecodingError`, whose underlying error is a `SelectorError` if the JSON isn't a selector.
  public init(from decoder: any Decoder) throws {
    let json = try JSONValue(from: decoder)
    do throws(SelectorError) {
      try self.init(json)
    } catch {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "\(error)", underlyingError: error))
    }
  }

  /// Encodes the selector as its JSON.
  public func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}
