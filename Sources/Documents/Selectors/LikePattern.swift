/// A pattern of `$like`: `*` is any run of characters, `?` one Unicode scalar, a backslash makes the next character an ordinary one.
///
/// Matching takes time linear in text times pattern at the worst, and memory for the pattern only.
struct LikePattern: Equatable, Sendable {
  private enum Part: Equatable, Sendable {
    case byte(UInt8)
    case anyScalar
    case anyRun
  }

  private let parts: [Part]

  /// nil if the pattern ends in the middle of an escape.
  init?(_ pattern: String) {
    var (parts, isEscaped) = ([Part](), false)
    for byte in pattern.utf8 {
      if isEscaped {
        parts.append(.byte(byte))
        isEscaped = false
        continue
      }
      switch byte {
      case UInt8(ascii: "\\"): isEscaped = true
      case UInt8(ascii: "*"): if parts.last != .anyRun { parts.append(.anyRun) }
      case UInt8(ascii: "?"): parts.append(.anyScalar)
      default: parts.append(.byte(byte))
      }
    }
    guard !isEscaped else { return nil }
    self.parts = parts
  }

  /// Whether the whole text, which is UTF-8, matches.
  func matches(_ text: Span<UInt8>) -> Bool {
    // Where to go on if what follows the last run fails: one scalar further on.
    var (place, part) = (0, 0)
    var retry: (place: Int, part: Int)?
    func scalarSize(at place: Int) -> Int {
      switch text[place] {
      case ..<0x80: 1
      case ..<0xE0: 2
      case ..<0xF0: 3
      default: 4
      }
    }
    while true {
      if part < parts.count, parts[part] == .anyRun {
        part += 1
        retry = (place, part)
        continue
      }
      if part == parts.count, place == text.count { return true }
      if part < parts.count, place < text.count {
        switch parts[part] {
        case .byte(let byte):
          if text[place] == byte {
            (place, part) = (place + 1, part + 1)
            continue
          }
        case .anyScalar:
          (place, part) = (place + scalarSize(at: place), part + 1)
          continue
        case .anyRun: preconditionFailure("handled above")
        }
      }
      guard let last = retry, last.place < text.count else { return false }
      place = last.place + scalarSize(at: last.place)
      part = last.part
      retry = (place, part)
    }
  }
}
