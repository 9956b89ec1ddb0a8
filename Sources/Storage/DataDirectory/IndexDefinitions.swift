import Documents
import EntryFiles

/// The definitions of a store's indexes as text: one line of JSON for each, in a file of the data directory
/// (Protocol/data-directory.md, §4) and in backups (Protocol/backup-format.md, §1).
///
/// A line ends with a newline, which JSON text has nowhere else.
enum IndexDefinitions {
  /// The maximum size of all definitions of a store, in bytes.
  static let maxByteCount = 1 << 20

  /// Why bytes are not definitions: what is wrong, and in which line, counted from 1; 0 for the text as a whole.
  struct ParseError: Error, Equatable, CustomStringConvertible {
    let line: Int
    let reason: String

    var description: String { line == 0 ? reason : "line \(line): \(reason)" }
  }

  /// Returns the lines.
  static func bytes(of indexes: [DocumentIndex]) -> [UInt8] {
    var bytes: [UInt8] = []
    for index in indexes {
      bytes += index.json.encoded()
      bytes.append(UInt8(ascii: "\n"))
    }
    return bytes
  }

  /// Parses what `bytes(of:)` returns.
  /// - Parameter firstLine: The number of the first line, for errors.
  static func indexes(in bytes: ArraySlice<UInt8>, firstLine: Int = 1) throws(ParseError) -> [DocumentIndex] {
    guard bytes.count <= maxByteCount else {
      throw ParseError(line: 0, reason: "the index definitions have more than \(maxByteCount) bytes")
    }
    guard bytes.isEmpty || bytes.last == UInt8(ascii: "\n") else {
      throw ParseError(line: 0, reason: "the end of the last index definition is missing")
    }
    var indexes: [DocumentIndex] = []
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
    for (number, line) in lines.enumerated() {
      func failure(_ reason: String) -> ParseError { ParseError(line: firstLine + number, reason: reason) }
      let index: DocumentIndex
      do { index = try DocumentIndex(parsing: line.span) } catch {
        throw failure("\(error)")
      }
      guard !indexes.contains(where: { $0.name == index.name }) else {
        throw failure("duplicate index \"\(index.name)\"")
      }
      guard indexes.count < Store.maxIndexCount else {
        throw failure("a store has at most \(Store.maxIndexCount) indexes")
      }
      indexes.append(index)
    }
    return indexes
  }

  // MARK: The file

  private static let format = "larder indexes 1"
  /// The maximum size of the file: the definitions, and a first line with eight digits.
  static let maxFileByteCount = format.utf8.count + " 00000000\n".utf8.count + maxByteCount

  /// Returns the contents of the file: a line with the format and the checksum of the rest, and the definitions.
  static func fileBytes(_ indexes: [DocumentIndex]) -> [UInt8] {
    let bytes = bytes(of: indexes)
    return firstLine(before: bytes[...]) + bytes
  }

  private static func firstLine(before bytes: ArraySlice<UInt8>) -> [UInt8] {
    Array("\(format) \(hexadecimalText(UInt64(Array(bytes).checksum()), digits: 8))\n".utf8)
  }

  /// Parses what `fileBytes` returns, and checks the checksum.
  static func indexes(inFile bytes: [UInt8]) throws(ParseError) -> [DocumentIndex] {
    guard bytes.starts(with: format.utf8), let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else {
      throw ParseError(line: 1, reason: "it should be \"\(format)\" and a checksum")
    }
    let definitions = bytes[(end + 1)...]
    guard bytes[...end].elementsEqual(firstLine(before: definitions)) else {
      throw ParseError(line: 0, reason: "the checksum is wrong")
    }
    return try indexes(in: definitions, firstLine: 2)
  }
}
