/// The place at the end of an incomplete JSON text where the name of a member is typed.
struct MemberPlace: Equatable {
  /// The names of the members around the place, from the outermost.
  let path: [String]
  /// The beginning of the name.
  let name: String
  /// The text before the name's quote.
  let head: String

  private struct Container {
    let isObject: Bool
    /// The name of the current member.
    var name: String?
    var expectsName: Bool
  }

  private struct OpenString {
    let start: String.Index
    var text = String.UnicodeScalarView()
    /// Whether a backslash precedes the next character.
    var isEscaped = false
  }

  /// Returns nil if something else than a member's name is typed at the end of the text, or if the name has escapes.
  init?(atEndOf text: String) {
    var containers: [Container] = []
    var string: OpenString?
    for index in text.unicodeScalars.indices {
      let scalar = text.unicodeScalars[index]
      if var open = string {
        if scalar == "\"", !open.isEscaped {
          string = nil
          if containers.last?.expectsName == true { containers[containers.count - 1].name = String(open.text) }
          continue
        }
        open.isEscaped = scalar == "\\" && !open.isEscaped
        open.text.append(scalar)
        string = open
        continue
      }
      switch scalar {
      case "\"": string = OpenString(start: index)
      case "{": containers.append(Container(isObject: true, expectsName: true))
      case "[": containers.append(Container(isObject: false, expectsName: false))
      case "}", "]": _ = containers.popLast()
      case ":" where !containers.isEmpty: containers[containers.count - 1].expectsName = false
      case "," where containers.last?.isObject == true:
        containers[containers.count - 1] = Container(isObject: true, expectsName: true)
      default: break
      }
    }
    guard let container = containers.last, container.expectsName else { return nil }
    // After a complete name, a colon comes next.
    guard string != nil || container.name == nil, string?.text.contains("\\") != true else { return nil }
    path = containers.dropLast().compactMap(\.name)
    name = string.map { String($0.text) } ?? ""
    head = string.map { String(text[..<$0.start]) } ?? text
  }

  /// Returns the text with a member's name and the colon after it.
  func text(naming name: String) -> String { "\(head)\"\(name)\":" }
}
