extension FixedWidthInteger {
  /// Reads decimal digits, and nothing else; nil for a sign, for none at all and for more than fits.
  package init?(digits: Substring) {
    guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    self.init(digits)
  }
}
