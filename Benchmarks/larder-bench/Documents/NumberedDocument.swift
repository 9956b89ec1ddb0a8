/// A document with a number. Its key in Larder is the number as text; its id in SQLite is the number.
struct NumberedDocument: Sendable {
  let number: Int
  /// The number in eight digits, so that keys have the order of numbers.
  let key: [UInt8]
  let text: [UInt8]

  init(_ number: Int, _ text: [UInt8]) {
    self.number = number
    let digits = Array("\(number)".utf8)
    key = Array(repeating: UInt8(ascii: "0"), count: max(0, 8 - digits.count)) + digits
    self.text = text
  }

  /// Returns documents with the numbers from 0 on.
  static func all(_ texts: [String]) -> [NumberedDocument] {
    texts.enumerated().map { NumberedDocument($0.offset, Array($0.element.utf8)) }
  }
}
