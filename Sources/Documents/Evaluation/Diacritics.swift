@_spi(_Unicode) import Swift

/// Text without diacritics: its canonical decomposition without nonspacing marks.
enum Diacritics {
  static func removed(from scalars: [Unicode.Scalar]) -> [Unicode.Scalar] {
    if scalars.allSatisfy(\.isASCII) { return scalars }
    var text = String.UnicodeScalarView()
    text.append(contentsOf: scalars)
    return String(text)._nfd.filter { $0.properties.generalCategory != .nonspacingMark }
  }
}
