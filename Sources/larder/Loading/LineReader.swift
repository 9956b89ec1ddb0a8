import Glibc

/// Reads a file or pipe line by line into one buffer, which grows to the length of the longest line.
///
/// The bytes from `start` to `end` are unread; `scanned` divides them: no line ends before it.
struct LineReader: ~Copyable {
  /// Every entry fits: the client's maximum frame size, times six for escapes.
  static let maxLineLength = 6 * (64 << 20) + 65_536

  private let input: InputFile
  private(set) var buffer: [UInt8]
  private var start = 0
  private var end = 0
  private var scanned = 0
  private var isAtEnd = false

  /// The size of the lines so far.
  private(set) var bytesRead = 0
  /// The number of the current line, from 1.
  private(set) var number = 0

  init(_ input: consuming InputFile, chunk: Int = 256 << 10) {
    self.input = input
    buffer = [UInt8](repeating: 0, count: chunk)
  }

  /// A Boolean value that indicates whether `fill` would return without waiting for input.
  var isReady: Bool { input.isReady }

  /// Returns the next line's range in `buffer`, without its line feed and a preceding carriage return; nil if no
  /// complete line is buffered.
  mutating func next() -> Range<Int>? {
    if let length = buffer.span.extracting(scanned..<end).firstIndex(of: UInt8(ascii: "\n")) {
      return consume(upTo: scanned + length, skipping: 1)
    }
    scanned = end
    return isAtEnd && start < end ? consume(upTo: end, skipping: 0) : nil
  }

  private mutating func consume(upTo lineEnd: Int, skipping: Int) -> Range<Int> {
    let lineStart = start
    start = lineEnd + skipping
    scanned = start
    number += 1
    bytesRead += start - lineStart
    let endsInCarriageReturn = lineEnd > lineStart && buffer[lineEnd - 1] == UInt8(ascii: "\r")
    return lineStart..<(endsInCarriageReturn ? lineEnd - 1 : lineEnd)
  }

  /// Reads more bytes.
  /// - Returns: Whether another line is possible.
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
        throw LineError("it is longer than \(Self.maxLineLength) bytes")
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
