extension JSONScanner {
  /// Passes over a string, whose opening quote comes next.
  mutating func skipString(in bytes: Span<UInt8>) throws(JSONError) {
    place &+= 1
    while place < bytes.count {
      switch bytes[place] {
      case UInt8(ascii: "\""):
        place &+= 1
        return
      case UInt8(ascii: "\\"): try skipEscape(in: bytes)
      case 0..<0x20: throw JSONError(place, "a control character in a string has to be escaped")
      default: place &+= 1
      }
    }
    throw JSONError(place, "the text ends in a string")
  }

  private mutating func skipEscape(in bytes: Span<UInt8>) throws(JSONError) {
    let start = place
    place &+= 1
    switch peek(bytes) {
    case UInt8(ascii: "u"):
      place &+= 1
      for _ in 0..<4 {
        guard let byte = peek(bytes), hexDigit(byte) != nil else {
          throw JSONError(start, "\\u takes four hexadecimal digits")
        }
        place &+= 1
      }
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      place &+= 1
    default: throw JSONError(start, "there is no such escape")
    }
  }

  /// Passes over a number, whose first character comes next.
  mutating func skipNumber(in bytes: Span<UInt8>) throws(JSONError) {
    _ = take(UInt8(ascii: "-"), in: bytes)
    if !take(UInt8(ascii: "0"), in: bytes) { try skipDigits(in: bytes) }
    if take(UInt8(ascii: "."), in: bytes) { try skipDigits(in: bytes) }
    if take(UInt8(ascii: "e"), in: bytes) || take(UInt8(ascii: "E"), in: bytes) {
      if !take(UInt8(ascii: "+"), in: bytes) { _ = take(UInt8(ascii: "-"), in: bytes) }
      try skipDigits(in: bytes)
    }
  }

  private mutating func skipDigits(in bytes: Span<UInt8>) throws(JSONError) {
    let start = place
    while let byte = peek(bytes), byte &- UInt8(ascii: "0") < 10 { place &+= 1 }
    guard place > start else { throw JSONError(place, "a digit is expected") }
  }

  mutating func skipLiteral(_ literal: StaticString, in bytes: Span<UInt8>) throws(JSONError) {
    let start = place
    for index in 0..<literal.utf8CodeUnitCount {
      guard take(unsafe literal.utf8Start[index], in: bytes) else { throw JSONError(start, "a value is expected") }
    }
  }
}

/// The worth of a hexadecimal digit in ASCII.
@inline(__always)
func hexDigit(_ byte: UInt8) -> UInt16? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt16(byte - UInt8(ascii: "0"))
  case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt16(byte - UInt8(ascii: "a") + 10)
  case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt16(byte - UInt8(ascii: "A") + 10)
  default: nil
  }
}
