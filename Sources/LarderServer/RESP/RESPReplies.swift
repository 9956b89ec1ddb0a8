import Storage
import Wire

/// The version of RESP that a client has chosen with HELLO.
enum RESPVersion: Int {
  case two = 2
  case three = 3
}

/// The types of RESP, in the order in which a reply is written. What has another form in RESP2 takes the version.
extension ByteBuffer {
  mutating func appendRESP(simple text: StaticString) {
    append(UInt8(ascii: "+"))
    unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    appendRESPEnd()
  }

  /// Appends the reply to most changes.
  @inline(__always)
  mutating func appendRESPOK() {
    // `+OK` and the beginning of the end.
    append(UInt32(0x0D4B_4F2B))
    append(UInt8(ascii: "\n"))
  }

  /// Appends an error, which is a line that begins with a code.
  mutating func appendRESP(error text: String) {
    append(UInt8(ascii: "-"))
    let isLine = text.utf8.allSatisfy { $0 != 0x0A && $0 != 0x0D }
    append(isLine ? text : String(decoding: text.utf8.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }, as: UTF8.self))
    appendRESPEnd()
  }

  @inline(__always)
  mutating func appendRESP(_ number: Int) { appendRESPHeader(":", number) }

  @inline(__always)
  mutating func appendRESP(bulk bytes: RawSpan) {
    appendRESPBulkHeader(bytes.byteCount)
    append(bytes)
    appendRESPEnd()
  }

  mutating func appendRESP(bulk bytes: [UInt8]) {
    appendRESPBulkHeader(bytes.count)
    append(bytes)
    appendRESPEnd()
  }

  mutating func appendRESP(bulk text: String) {
    appendRESPBulkHeader(text.utf8.count)
    append(text)
    appendRESPEnd()
  }

  /// Appends a text that RESP3 shows as it is.
  mutating func appendRESP(verbatim text: String, _ version: RESPVersion) {
    guard version == .three else { return appendRESP(bulk: text) }
    appendRESPHeader("=", text.utf8.count + 4)
    append("txt:")
    append(text)
    appendRESPEnd()
  }

  @inline(__always)
  mutating func appendRESPBulkHeader(_ byteCount: Int) { appendRESPHeader("$", byteCount) }

  @inline(__always)
  mutating func appendRESPNull(_ version: RESPVersion) {
    if version == .three { append("_\r\n") } else { append("$-1\r\n") }
  }

  mutating func appendRESPNullArray(_ version: RESPVersion) {
    if version == .three { append("_\r\n") } else { append("*-1\r\n") }
  }

  @inline(__always)
  mutating func appendRESP(arrayOf count: Int) { appendRESPHeader("*", count) }

  /// Appends the beginning of a map, which is an array of keys and values in RESP2.
  mutating func appendRESP(mapOf count: Int, _ version: RESPVersion) {
    if version == .three { appendRESPHeader("%", count) } else { appendRESP(arrayOf: 2 * count) }
  }

  /// Appends the beginning of a set, which is an array in RESP2.
  mutating func appendRESP(setOf count: Int, _ version: RESPVersion) {
    appendRESPHeader(version == .three ? "~" : "*", count)
  }

  /// Appends the beginning of a push, which is an array in RESP2.
  mutating func appendRESP(pushOf count: Int, _ version: RESPVersion) {
    appendRESPHeader(version == .three ? ">" : "*", count)
  }

  /// Appends a type and a number, which is a line.
  @inline(__always)
  private mutating func appendRESPHeader(_ type: UnicodeScalar, _ number: Int) {
    append(UInt8(ascii: type))
    appendDigits(number)
    appendRESPEnd()
  }

  @inline(__always)
  mutating func appendRESPEnd() { append(UInt16(0x0A0D)) }

  /// Appends a number in decimal digits.
  @inline(__always)
  mutating func appendDigits(_ number: Int) {
    if number >= 0, number < 1_000 { return appendFewDigits(UInt32(truncatingIfNeeded: number)) }
    appendManyDigits(number)
  }

  @inline(__always)
  private mutating func appendFewDigits(_ number: UInt32) {
    if number < 10 { return append(UInt8(truncatingIfNeeded: number) &+ 0x30) }
    // The product with 2¹⁶ ÷ 10, rounded up, is exact for numbers of this size.
    let tens = (number &* 6_554) >> 16
    let ones = number &- tens &* 10
    if tens < 10 { return append(UInt16(truncatingIfNeeded: ((ones << 8) | tens) &+ 0x3030)) }
    let hundreds = (tens &* 6_554) >> 16
    append(UInt8(truncatingIfNeeded: hundreds) &+ 0x30)
    append(UInt16(truncatingIfNeeded: ((ones << 8) | (tens &- hundreds &* 10)) &+ 0x3030))
  }

  private mutating func appendManyDigits(_ number: Int) {
    // The largest number has 19 digits and a sign.
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var (rest, start) = (number.magnitude, 20)
    repeat {
      start &-= 1
      digits[start] = UInt8(truncatingIfNeeded: rest % 10) &+ 0x30
      rest /= 10
    } while rest > 0
    if number < 0 {
      start &-= 1
      digits[start] = UInt8(ascii: "-")
    }
    unsafe append(digits.span.extracting(start..<20).bytes)
  }
}

extension ReplyBuffer {
  /// Appends the value of an entry. One in a file is read later.
  /// - Parameter attaches: Whether a large value in memory is attached instead of copied. It must be the only value of the
  ///   reply, which can't be removed any more.
  @inline(__always)
  mutating func appendRESP(valueOf entry: EntryView, attaches: Bool = false) {
    bytes.appendRESPBulkHeader(entry.valueByteCount)
    if attaches, entry.valueByteCount >= AttachedValue.minSize, let value = entry.largeValue {
      attach(value)
    } else if let value = unsafe entry.value {
      unsafe bytes.append(value)
    } else if let value = entry.separatedValue {
      unsafe leaveRoom(for: value, key: entry.key)
    }
    bytes.appendRESPEnd()
  }
}
