import ArgumentParser

/// A range of a value's bytes, as in the header Range of HTTP: `M-N`, `M-` or `-N`.
enum ByteRange: Equatable {
  /// From an offset through another; through the end of the value without one.
  case from(Int, through: Int?)
  /// The last bytes.
  case last(Int)

  static func parse(_ text: String) throws -> ByteRange {
    let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map { Self.number($0) }
    switch parts.count == 2 ? (parts[0], parts[1]) : (nil, nil) {
    case (.number(let first)?, .empty?): return .from(first, through: nil)
    case (.number(let first)?, .number(let last)?) where first <= last: return .from(first, through: last)
    case (.empty?, .number(let count)?) where count > 0: return .last(count)
    default:
      throw ValidationError(
        "'\(text)' is not a range; use 0-99 for the first 100 bytes, 100- for all but those, or -100 for the last 100")
    }
  }

  private enum Part {
    case empty
    case number(Int)
  }

  /// Returns nil for anything but digits.
  private static func number(_ text: Substring) -> Part? {
    if text.isEmpty { return Part.empty }
    guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    return Int(text).map { .number($0) }
  }

  /// Returns the offsets of the range in a value, or nil if it begins after the value's end.
  func offsets(inValueOf byteCount: Int) -> Range<Int>? {
    switch self {
    case .last(let count): max(0, byteCount - count)..<byteCount
    case .from(let first, _) where first > byteCount: nil
    case .from(let first, let last): first..<(last.map { $0 < byteCount ? $0 + 1 : byteCount } ?? byteCount)
    }
  }
}
