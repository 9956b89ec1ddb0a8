import Glibc
import Storage
import Wire

/// Commands on values that are numbers.
extension RESPRun {
  mutating func add(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    guard let number = bytes.extracting(request.word(2, bytes)).decimalNumber else { throw .notAnInteger }
    try add(number, request, bytes, &map, &replies)
  }

  mutating func subtract(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    guard let number = bytes.extracting(request.word(2, bytes)).decimalNumber else { throw .notAnInteger }
    guard number != .min else { throw .error("ERR decrement would overflow") }
    try add(-number, request, bytes, &map, &replies)
  }

  mutating func add(
    _ number: Int, _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    try add(number, to: bytes.extracting(request.word(1, bytes)), &map, &replies)
  }

  mutating func add(
    _ number: Int, to key: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let entry = try string(key, &map)
    var value = 0
    if let entry {
      // No larger value is a number, so that none is read from a disk.
      guard unsafe entry.value != nil,
        let number = try withValue(of: entry, { $0.decimalNumber })
      else { throw .notAnInteger }
      value = number
    }
    let (sum, overflows) = value.addingReportingOverflow(number)
    guard !overflows else { throw .error("ERR increment or decrement would overflow") }
    let expiry = entry?.expiry ?? 0
    client.scratch.removeAll()
    client.scratch.appendDigits(sum)
    try putScratch(key, expiry: expiry, &map)
    replies.bytes.appendRESP(sum)
  }

  mutating func addFloat(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    let entry = try string(key, &map)
    var value: RESPFloat = 0
    if let entry {
      guard unsafe entry.value != nil, let number = try withValue(of: entry, { Self.float($0) }) else {
        throw .notAFloat
      }
      value = number
    }
    guard let increment = Self.float(bytes.extracting(request.word(2, bytes))) else { throw .notAFloat }
    let sum = value + increment
    guard sum.isFinite else { throw .error("ERR increment would produce NaN or Infinity") }
    let expiry = entry?.expiry ?? 0
    client.scratch.removeAll()
    client.scratch.append(Self.text(of: sum))
    try putScratch(key, expiry: expiry, &map)
    replies.bytes.appendRESP(bulk: unsafe RawSpan(_unsafeBytes: client.scratch.bytes))
  }

  /// The maximum length of a number, in bytes.
  private static let maxFloatSize = 5_120

  /// The number that the bytes are; nil if they are anything else.
  private static func float(_ bytes: RawSpan) -> RESPFloat? {
    guard bytes.byteCount > 0, bytes.byteCount < maxFloatSize else { return nil }
    let text = bytes.toArray()
    guard let first = text.first, !RESPLine.isSpace(first), !text.contains(0) else { return nil }
    return unsafe (text + [0]).withUnsafeBytes { bytes in
      let start = unsafe bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
      var end: UnsafeMutablePointer<CChar>?
      errno = 0
      #if arch(x86_64)
        let number = unsafe strtold(start, &end)
      #else
        let number = unsafe strtod(start, &end)
      #endif
      guard let end = unsafe end, unsafe end - UnsafeMutablePointer(mutating: start) == text.count, !number.isNaN else {
        return nil
      }
      // "inf" is a number, and what is too large or too small for one is not.
      return errno == ERANGE && (number.isInfinite || number.isZero) ? nil : number
    }
  }

  /// The number in 17 decimals at most.
  private static func text(of number: RESPFloat) -> String {
    #if arch(x86_64)
      let format = "%.17Lf"
    #else
      let format = "%.17f"
    #endif
    var buffer = [CChar](repeating: 0, count: 5_120)
    let count = unsafe withVaList([number]) { unsafe vsnprintf(&buffer, buffer.count, format, $0) }
    var text = buffer[..<Int(count)].map { UInt8(bitPattern: $0) }
    while text.last == UInt8(ascii: "0") { text.removeLast() }
    if text.last == UInt8(ascii: ".") { text.removeLast() }
    return text == Array("-0".utf8) ? "0" : String(decoding: text, as: UTF8.self)
  }
}

#if arch(x86_64)
  /// A number as exact as the machine has it.
  private typealias RESPFloat = Float80
#else
  private typealias RESPFloat = Double
#endif
