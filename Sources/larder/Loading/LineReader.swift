import Glibc

/// Reads a file or pipe line by line into one buffer, which grows to the longest line and no further.
struct LineReader: ~Copyable {
  /// Every entry fits: the largest frame a client takes, each byte of it written as an escape of six.
  static let maxLineLength = 6 * (64 << 20) + 65_536

  private let input: InputFile
  private(set) var buffer: [UInt8]
  private var start = 0
  private var end = 0
  /// Up to here there is no line's end.
  private var scanned = 0
  private var isAtEnd = false

  /// Bytes of the lines so far.
  private(set) var bytesRead = 0
  /// The number of the last line, from 1.
  private(set) var number = 0

  init(_ input: consuming InputFile, chunk: Int = 256 << 10) {
    self.input = input
    buffer = [UInt8](repeating: 0, count: chunk)
  }

  /// Whether `fill` would not wait for whoever writes the input.
  var isReady: Bool { input.isReady }

  /// Where in `buffer` the next line is, without its line feed and a carriage return before that; nil when no whole line is there.
  mutating func next() -> Range<Int>? {
    if let length = buffer.span.extracting(scanned..<end).firstIndex(of: UInt8(ascii: "\n")) {
      return take(upTo: scanned + length, skipping: 1)
    }
    scanned = end
    return isAtEnd && start < end ? take(upTo: end, skipping: 0) : nil
  }

  private mutating func take(upTo lineEnd: Int, skipping: Int) -> Range<Int> {
    let lineStart = start
    start = lineEnd + skipping
    scanned = start
    number += 1
    bytesRead += start - lineStart
    let isWindows = lineEnd > lineStart && buffer[lineEnd - 1] == UInt8(ascii: "\r")
    return lineStart..<(isWindows ? lineEnd - 1 : lineEnd)
  }

  /// Reads more.
  /// - Returns: whether there may be another line.
  mutating func fill() throws -> Bool {
    if isAtEnd { return false }
    if start > 0 {
      unsafe buffer.withUnsafeMutableBytes { bytes in
        _ = unsafe memmove(bytes.baseAddress!, bytes.baseAddress! + start, end - start)
      }
      (end, scanned, start) = (end - start, scanned - start, 0)
    }
    if end == buffer.count {
      guard buffer.count < Self.maxLineLength else {
        number += 1
        throw JSONError("it is longer than any entry can be")
      }
      buffer += [UInt8](repeating: 0, count: min(buffer.count, Self.maxLineLength - buffer.count))
    }
    let count = try unsafe buffer.withUnsafeMutableBytes { bytes in
      try unsafe input.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[end...]))
    }
    isAtEnd = count == 0
    end += count
    return true
  }
}
