import Basics
import Documents
import FoundationEssentials
import Larder

/// An entry as one line of JSON, from which `EntryLineParser` restores the same bytes:
///
///     {"key":"apple","value":{"colour":"red"},"revision":7}
///
/// A value that is a JSON object or array on one line is part of the line unchanged; other text is a JSON string; bytes
/// that are not UTF-8 are `valueBase64`. A list has `values`, by the same rule for each element, or `valuesBase64` if
/// any element is not UTF-8.
enum EntryLine {
  static let help = """
    A line is {"key","value"|"valueBase64","revision"}, with "expiresInMilliseconds" and "expiresAtMilliseconds" \
    (since 1970) if the entry expires. A value \
    that is a JSON object or array on one line is printed unchanged, other text as a string, and bytes that are not \
    UTF-8 as "valueBase64". Lists have an array, "values" or "valuesBase64".
    """

  static let helpWithTable = "Prints a table on a terminal, otherwise one line of JSON for each entry. " + help

  /// - Parameter hasMore: Whether a change has further ones of its commit after it.
  static func append(_ entry: Entry, keysOnly: Bool = false, hasMore: Bool = false, to output: inout [UInt8]) {
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
      output.append(contentsOf: ",\"\(LineExpiry.timeName)\":".utf8)
      output.append(number: LineExpiry.time(expiry))
    }
    output.append(hasMore ? ",\"more\":true}\n" : "}\n")
  }

  /// Appends the line of a key that has no entry.
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
    if bytes.firstIndex(of: UInt8(ascii: "\n")) == nil, isContainer(bytes) {
      output.append(bytes)
    } else {
      JSONString.append(quoting: bytes, to: &output)
    }
  }

  /// Returns whether the bytes are one object or array without anything around it, not even white space.
  private static func isContainer(_ bytes: Span<UInt8>) -> Bool {
    guard bytes.count >= 2 else { return false }
    switch (bytes[0], bytes[bytes.count - 1]) {
    case (UInt8(ascii: "{"), UInt8(ascii: "}")), (UInt8(ascii: "["), UInt8(ascii: "]")): break
    default: return false
    }
    do throws(JSONError) { try JSON.validate(bytes) } catch { return false }
    return true
  }
}

/// A change as one line of JSON: a written entry as in `EntryLine`, a deletion as
/// `{"key":"apple","deleted":true,"revision":8}`, and the deletion of all entries as
/// `{"deletedAll":true,"revision":9}`. All changes of a commit but the last one have `"more":true`, too.
enum ChangeLine {
  /// Appends the changes of a commit.
  static func append(_ commit: Commit, keysOnly: Bool, to output: inout [UInt8]) {
    for (index, change) in commit.changes.enumerated() {
      append(
        change, revision: commit.revision, keysOnly: keysOnly, hasMore: index + 1 < commit.changes.count, to: &output)
    }
  }

  /// Appends the line that ends a file with the changes up to a revision.
  static func append(through revision: UInt64, to output: inout [UInt8]) {
    output.append("{\"through\":")
    output.append(number: revision)
    output.append("}\n")
  }

  private static func append(
    _ change: Change, revision: UInt64, keysOnly: Bool, hasMore: Bool, to output: inout [UInt8]
  ) {
    switch change {
    case .put(let entry): return EntryLine.append(entry, keysOnly: keysOnly, hasMore: hasMore, to: &output)
    case .delete(let key):
      output.append("{\"key\":")
      output.append(jsonString: key)
      output.append(",\"deleted\":true")
    case .deleteAll: output.append("{\"deletedAll\":true")
    }
    output.append(",\"revision\":")
    output.append(number: revision)
    output.append(hasMore ? ",\"more\":true}\n" : "}\n")
  }
}
