import CLibYAML

/// A value in a YAML document, with the lines that its parts are in, counted from 1.
package indirect enum YAMLNode {
  /// - Parameter isPlain: Whether the text is without quotes, so that it can stand for something else than a string.
  case scalar(String, isPlain: Bool, line: Int)
  case list([YAMLNode], line: Int)
  case mapping([(key: YAMLNode, value: YAMLNode)], line: Int)

  package var line: Int {
    switch self {
    case .scalar(_, _, let line), .list(_, let line), .mapping(_, let line): line
    }
  }

  /// Whether it stands for no value, as `~` and nothing do.
  package var isNull: Bool {
    if case .scalar(let text, isPlain: true, _) = self {
      ["", "~", "null", "Null", "NULL"].contains(text)
    } else {
      false
    }
  }
}

/// Why a text is not YAML, or not YAML that settings can be written in.
package struct YAMLError: Error {
  /// Counted from 1.
  package let line: Int
  /// Counted from 1; nil for the line as a whole.
  package let column: Int?
  package let reason: String
}

/// Parses a YAML document. Anchors, aliases and more than one document are errors, because settings don't need them.
///
/// The parser of libyaml has the events; this type makes a tree of them. It is used once.
///
/// Safe because the parser and the bytes that it reads are allocated by `init` and freed by `deinit`.
@safe package struct YAMLParser: ~Copyable {
  /// The maximum number of lists and mappings inside each other. Settings have two, the description of HTTP about twenty.
  private static let maxDepth = 32

  private let parser: UnsafeMutablePointer<yaml_parser_t>
  private let bytes: UnsafeMutableBufferPointer<UInt8>

  /// Returns the document in a text; nil if there is none.
  package static func document(in text: [UInt8]) throws(YAMLError) -> YAMLNode? {
    var parser = YAMLParser(text)
    return try parser.document()
  }

  private init(_ text: [UInt8]) {
    unsafe bytes = .allocate(capacity: text.count)
    _ = unsafe bytes.initialize(from: text)
    unsafe parser = .allocate(capacity: 1)
    precondition(unsafe yaml_parser_initialize(parser) == 1, "out of memory")
    unsafe yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
  }

  deinit {
    unsafe yaml_parser_delete(parser)
    unsafe parser.deallocate()
    unsafe bytes.deallocate()
  }

  /// What the next part of the text is.
  private enum Event {
    case scalar(String, isPlain: Bool)
    case listStart, mappingStart, end, documentStart, other
  }

  private mutating func document() throws(YAMLError) -> YAMLNode? {
    while true {
      let (event, line) = try next()
      switch event {
      case .other: continue
      case .end: return nil
      case .documentStart:
        let root = try node(try next(), depth: 0)
        while true {
          switch try next() {
          case (.end, _): return root
          case (.documentStart, let line):
            throw YAMLError(line: line, column: nil, reason: "a second document begins here; use one")
          default: continue
          }
        }
      default: throw YAMLError(line: line, column: nil, reason: "this is not YAML")
      }
    }
  }

  private mutating func node(_ start: (event: Event, line: Int), depth: Int) throws(YAMLError) -> YAMLNode {
    guard depth < Self.maxDepth else {
      throw YAMLError(line: start.line, column: nil, reason: "lists or sections are nested too deeply")
    }
    switch start.event {
    case .scalar(let text, let isPlain): return .scalar(text, isPlain: isPlain, line: start.line)
    case .listStart:
      var items: [YAMLNode] = []
      while let item = try nextNode(depth: depth + 1) { items.append(item) }
      return .list(items, line: start.line)
    case .mappingStart:
      var members: [(key: YAMLNode, value: YAMLNode)] = []
      while let key = try nextNode(depth: depth + 1) {
        guard let value = try nextNode(depth: depth + 1) else { break }
        members.append((key, value))
      }
      return .mapping(members, line: start.line)
    case .end, .documentStart, .other:
      throw YAMLError(line: start.line, column: nil, reason: "this is not YAML")
    }
  }

  /// Returns the next node of a list or mapping; nil at its end.
  private mutating func nextNode(depth: Int) throws(YAMLError) -> YAMLNode? {
    let start = try next()
    if case .end = start.event { return nil }
    return try node(start, depth: depth)
  }

  private mutating func next() throws(YAMLError) -> (event: Event, line: Int) {
    var event = unsafe yaml_event_t()
    guard unsafe yaml_parser_parse(parser, &event) == 1 else { throw error() }
    defer { unsafe yaml_event_delete(&event) }
    let line = unsafe event.start_mark.line + 1
    switch unsafe event.type {
    case YAML_SCALAR_EVENT:
      let scalar = unsafe event.data.scalar
      try unsafe refuseAnchor(scalar.anchor, line)
      let text = unsafe String(
        decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
      return unsafe (.scalar(text, isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE), line)
    case YAML_SEQUENCE_START_EVENT:
      try unsafe refuseAnchor(event.data.sequence_start.anchor, line)
      return (.listStart, line)
    case YAML_MAPPING_START_EVENT:
      try unsafe refuseAnchor(event.data.mapping_start.anchor, line)
      return (.mappingStart, line)
    case YAML_ALIAS_EVENT: throw YAMLError(line: line, column: nil, reason: "aliases (*name) are not supported")
    case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT, YAML_STREAM_END_EVENT: return (.end, line)
    case YAML_DOCUMENT_START_EVENT: return (.documentStart, line)
    default: return (.other, line)
    }
  }

  private func refuseAnchor(_ anchor: UnsafeMutablePointer<yaml_char_t>?, _ line: Int) throws(YAMLError) {
    guard unsafe anchor != nil else { return }
    throw YAMLError(line: line, column: nil, reason: "anchors (&name) are not supported")
  }

  // MARK: Errors

  /// Returns what libyaml stopped at.
  private func error() -> YAMLError {
    let problem = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? ""
    guard unsafe parser.pointee.error == YAML_SCANNER_ERROR || parser.pointee.error == YAML_PARSER_ERROR else {
      // The reader has no position; the text is not UTF-8, or has characters that YAML doesn't allow.
      let offset = unsafe min(bytes.count, Int(parser.pointee.problem_offset))
      let line = unsafe 1 + bytes[..<offset].count { $0 == UInt8(ascii: "\n") }
      return YAMLError(line: line, column: nil, reason: "there is a character that is not UTF-8 text")
    }
    let mark = unsafe parser.pointee.problem_mark
    return YAMLError(line: Int(mark.line) + 1, column: Int(mark.column) + 1, reason: Self.explanation(of: problem))
  }

  /// Says in terms of settings what a message of libyaml means.
  private static func explanation(of problem: String) -> String {
    switch problem {
    case "mapping values are not allowed in this context":
      "a value can't contain a colon and a space; put it in quotes, or check the indentation"
    case "did not find expected key":
      "this is neither a setting (KEY: VALUE) nor part of the one above; check its indentation, quotes and brackets"
    case "did not find expected '-' indicator":
      "this is neither an item of the list above (- ITEM) nor a setting; check its indentation"
    case "did not find expected ',' or ']'": "the list has no closing bracket (])"
    case "did not find expected ',' or '}'": "the section has no closing brace (})"
    case "could not find expected ':'": "a setting has the form KEY: VALUE, with a colon and a space"
    case "found unexpected end of stream": "a quote is not closed"
    case "found character that cannot start any token":
      "nothing can begin with this character; indent with spaces instead of tabs, and put values that begin with "
        + "@, ` or % in quotes"
    case "did not find expected node content", "did not find expected <document start>":
      "a value or setting is expected here"
    default: "this is not YAML (\(problem))"
    }
  }
}
