import Wire

/// The lines that some clients and people send instead of arrays.
enum RESPLine {
  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

  /// Whether the first word of a line shows that the client takes this for an HTTP server. Browsers could be made to send
  /// commands in the body of a request.
  static func isHTTP(_ word: RawSpan) -> Bool {
    let text = word.toString().lowercased()
    return text == "post" || text == "host:"
  }

  /// Returns the request in a line, and the array of words that it is a request in.
  /// - Returns: Nil if quotes are unbalanced.
  static func request(in line: RawSpan) -> (RESPRequest, array: [UInt8])? {
    guard let array = array(of: line),
      case .request(let request) = unsafe RESPRequest.scan(array.span.bytes, at: 0, maxSize: .max)
    else { return nil }
    return (request, array)
  }

  private static func array(of line: RawSpan) -> [UInt8]? {
    guard let words = words(of: line.toArray()) else { return nil }
    var array = Array("*\(words.count)\r\n".utf8)
    for word in words { array += Array("$\(word.count)\r\n".utf8) + word + [0x0D, 0x0A] }
    return array
  }

  private static func words(of line: [UInt8]) -> [[UInt8]]? {
    var words: [[UInt8]] = []
    var position = 0
    while true {
      while position < line.count, isSpace(line[position]) { position += 1 }
      guard position < line.count else { return words }
      var word: [UInt8] = []
      while position < line.count, !isSpace(line[position]) {
        let byte = line[position]
        position += 1
        guard byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") else {
          word.append(byte)
          continue
        }
        guard let quoted = quotedText(line, &position, quote: byte) else { return nil }
        word += quoted
        guard position == line.count || isSpace(line[position]) else { return nil }
      }
      words.append(word)
    }
  }

  /// Reads the rest of a quoted text.
  private static func quotedText(_ line: [UInt8], _ position: inout Int, quote: UInt8) -> [UInt8]? {
    var text: [UInt8] = []
    while position < line.count {
      let byte = line[position]
      position += 1
      if byte == quote { return text }
      guard byte == UInt8(ascii: "\\"), position < line.count else {
        text.append(byte)
        continue
      }
      let next = line[position]
      if quote == UInt8(ascii: "'") {
        if next == quote { position += 1 }
        text.append(next == quote ? quote : byte)
        continue
      }
      position += 1
      switch next {
      case UInt8(ascii: "x"):
        guard position + 2 <= line.count,
          let value = UInt8(String(decoding: line[position..<position + 2], as: UTF8.self), radix: 16)
        else {
          text.append(next)
          continue
        }
        position += 2
        text.append(value)
      case UInt8(ascii: "n"): text.append(0x0A)
      case UInt8(ascii: "r"): text.append(0x0D)
      case UInt8(ascii: "t"): text.append(0x09)
      case UInt8(ascii: "b"): text.append(0x08)
      case UInt8(ascii: "a"): text.append(0x07)
      default: text.append(next)
      }
    }
    return nil
  }
}
