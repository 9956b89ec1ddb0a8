/// A selector made ready to be run over the text of many documents.
///
/// Each document is scanned once: the values of all fields that the selector names are found on the way, and conditions are evaluated where
/// those values are. Documents without arrays of matches allocate nothing.
public struct CompiledSelector: Sendable {
  private let program: Program

  /// - Throws: `SelectorError` if the selector needs a text index, or if it was built in Swift and exceeds a limit.
  public init(_ selector: Selector) throws(SelectorError) {
    program = try Program(selector.checkedTree())
  }

  /// Whether a document matches. Text that isn't a JSON object is no document and doesn't match.
  /// - Complexity: O(*n*) in the size of the document, times the number of conditions for the values they are about.
  public func matches(_ document: Span<UInt8>) -> Bool {
    unsafe document.withUnsafeBytes { bytes in
      var scanner = unsafe JSONScanner(bytes)
      guard scanner.peek() == UInt8(ascii: "{") else { return false }
      do throws(JSONScanner.Failure) {
        let start = scanner.position
        var found = PathMatches()
        try found.scan(&scanner, program.paths)
        let root = SourceValue(start..<scanner.position, scanner)
        try scanner.expectEnd()
        return program.holds(for: root, found, scanner)
      } catch { return false }
    }
  }
}
