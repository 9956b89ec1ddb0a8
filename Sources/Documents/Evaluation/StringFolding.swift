// Canonical decomposition is not public in the standard library, but stable: Foundation relies on the same entry point.
@_spi(_Unicode) import Swift

extension Selector.StringOptions {
  /// Returns UTF-8 text without the differences that the options ignore: each scalar in its full lowercase mapping, and
  /// the canonical decomposition without nonspacing marks.
  func folded(_ text: Span<UInt8>) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(text.count)
    for index in text.indices {
      let byte = text[index]
      guard byte < 0x80 else { return unsafe text.withUnsafeBufferPointer { unsafe foldedScalars($0) } }
      let isUppercase = byte &- UInt8(ascii: "A") < 26
      output.append(isUppercase && contains(.ignoringCase) ? byte | 0x20 : byte)
    }
    return output
  }

  func folded(_ text: [UInt8]) -> [UInt8] { isEmpty ? text : folded(text.span) }

  /// Returns a string folded, and other values as they are.
  func folded(_ value: JSONValue) -> JSONValue {
    guard !isEmpty, case .string(let text) = value else { return value }
    return .string(String(decoding: folded(Array(text.utf8)), as: UTF8.self))
  }

  private func foldedScalars(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    let string = unsafe String(decoding: text, as: UTF8.self)
    var scalars = Array(string.unicodeScalars)
    if contains(.ignoringDiacritics) {
      scalars = string._nfd.filter { $0.properties.generalCategory != .nonspacingMark }
    }
    var output: [UInt8] = []
    for scalar in scalars {
      if contains(.ignoringCase) {
        output += Array(scalar.properties.lowercaseMapping.utf8)
      } else {
        UTF8.encode(scalar).map { output.append(contentsOf: $0) }
      }
    }
    return output
  }
}
