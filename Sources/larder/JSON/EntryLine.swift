import Basics
import Larder

/// How an entry is written as one line of JSON, such that reading the line gives the same bytes:
///
///     {"key":"apple","value":{"colour":"red"},"revision":7}
///
/// A value that is one JSON object or array on one line is in the line as it stands; other text is a JSON string; what is not UTF-8
/// is `valueBase64`. A list has `values`, by the same rule for each element, or `valuesBase64` when one of them is not UTF-8.
enum EntryLine {
  static let help = """
    A line is {"key","value"|"valueBase64","revision"}, and has "expiresInMilliseconds" when the entry expires. A value that is \
    a JSON object or array on one line is shown as it stands, other text as a string; "valueBase64" holds what is not UTF-8. \
    Lists have "values" or "valuesBase64", an array.
    """

  static let helpWithTable = "A table on a terminal, else one line of JSON an entry. " + help

  static func append(_ entry: Entry, keysOnly: Bool = false, to output: inout [UInt8]) {
    beginLine(key: entry.key, &output)
    if !keysOnly {
      switch entry.value {
      case .single(let bytes): append(single: bytes.span, to: &output)
      case .list(let elements): append(list: elements, to: &output)
      }
    }
    output.append(",\"revision\":")
    output.append(number: entry.revision)
    if let expiry = entry.expiresIn {
      output.append(",\"expiresInMilliseconds\":")
      output.append(number: max(1, expiry.wholeMilliseconds))
    }
    output.append("}\n")
  }

  /// The line of a key that has no entry.
  static func append(missing key: String, to output: inout [UInt8]) {
    beginLine(key: key, &output)
    output.append(",\"missing\":true}\n")
  }

  private static func beginLine(key: String, _ output: inout [UInt8]) {
    output.append("{\"key\":")
    output.append(jsonString: key)
  }

  private static func append(single bytes: Span<UInt8>, to output: inout [UInt8]) {
    if bytes.isUTF8 {
      output.append(",\"value\":")
      append(text: bytes, to: &output)
    } else {
      output.append(",\"valueBase64\":\"")
      Base64.append(bytes, to: &output)
      output.append("\"")
    }
  }

  private static func append(list elements: [[UInt8]], to output: inout [UInt8]) {
    let isText = elements.allSatisfy { $0.span.isUTF8 }
    output.append(isText ? ",\"values\":[" : ",\"valuesBase64\":[")
    for (index, element) in elements.enumerated() {
      if index > 0 { output.append(",") }
      if isText {
        append(text: element.span, to: &output)
      } else {
        output.append("\"")
        Base64.append(element.span, to: &output)
        output.append("\"")
      }
    }
    output.append("]")
  }

  private static func append(text bytes: Span<UInt8>, to output: inout [UInt8]) {
    if bytes.firstIndex(of: UInt8(ascii: "\n")) == nil, JSONScanner.isContainer(bytes) {
      output.append(bytes)
    } else {
      JSONString.append(bytes, to: &output)
    }
  }
}

extension [UInt8] {
  mutating func append(jsonString text: String) {
    JSONString.append(text.utf8.span, to: &self)
  }

  mutating func append(number: UInt64) {
    append(contentsOf: String(number).utf8)
  }
}
