extension FixedWidthInteger {
  /// Creates an integer from decimal digits. Returns nil if there are none, if there is anything else, such as a sign,
  /// or if the number doesn't fit.
  package init?(digits: Substring) {
    guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    self.init(digits)
  }
}
