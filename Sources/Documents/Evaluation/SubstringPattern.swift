/// A substring to search for, with the table of Knuth, Morris and Pratt: the search is linear whatever the texts are.
struct SubstringPattern: Sendable {
  private let bytes: [UInt8]
  /// For each prefix of the bytes, the length of the longest shorter prefix that it ends with.
  private let borders: [Int32]

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var borders = [Int32](repeating: 0, count: bytes.count)
    var length = 0
    for index in bytes.indices.dropFirst() {
      while length > 0, bytes[index] != bytes[length] { length = Int(borders[length - 1]) }
      if bytes[index] == bytes[length] { length += 1 }
      borders[index] = Int32(length)
    }
    self.borders = borders
  }

  /// Returns whether a text contains the substring. Complexity: O(*n*) in the size of the text.
  /// - Parameter budget: Once it is exhausted, the result means nothing.
  func occurs(in text: Span<UInt8>, _ budget: inout WorkBudget) -> Bool {
    guard !bytes.isEmpty, budget.spend(text.count / 8) else { return true }
    var length = 0
    for index in text.indices {
      while length > 0, text[index] != bytes[length] { length = Int(borders[length - 1]) }
      if text[index] == bytes[length] { length += 1 }
      if length == bytes.count { return true }
    }
    return false
  }
}
