import Platform
import YAML

/// A configuration file in YAML, with a key for each setting, or a section for settings whose keys begin alike.
struct SettingsFile {
  /// The value of a setting as a person writes it, one string for each element of a list, and their lines from 1.
  struct Value {
    let texts: [String]
    let line: Int
    let itemLines: [Int]
  }

  /// Far more than every setting with its documentation.
  private static let maxByteCount = 1 << 20

  private(set) var problems: [SettingsProblem] = []
  /// The keys of the values that are not of the right form.
  private(set) var invalidKeys: Set<String> = []
  private let path: String
  private var values: [String: Value] = [:]

  /// Reads a file.
  /// - Throws: `SettingsError` if it can't be read or is not YAML. `problems` are the values of the wrong form.
  init(_ path: String) throws(SettingsError) {
    self.path = path
    let bytes: [UInt8]
    do { bytes = try readFile(path, maxByteCount: Self.maxByteCount, trusting: .writableByOwner) } catch {
      throw SettingsError(["\(path): \(error.reason)"])
    }
    let root: YAMLNode?
    do { root = try YAMLParser.document(in: bytes) } catch {
      let column = error.column.map { ", column \($0)" } ?? ""
      throw SettingsError(["\(path), line \(error.line)\(column): \(error.reason)"])
    }
    switch root {
    case .mapping(let members, _)?: collect(members, prefix: "")
    case let root? where !root.isNull:
      throw SettingsError(["\(path): the file does not contain settings in the form KEY: VALUE"])
    default: break
    }
  }

  subscript(setting: Setting) -> Value? { values[setting.key] }

  // MARK: Collecting

  private mutating func collect(_ members: [(key: YAMLNode, value: YAMLNode)], prefix: String) {
    for (name, value) in members {
      let key: String
      if case .scalar(let text, _, _) = name { key = prefix + text } else { key = prefix + "?" }
      let isSection = Setting.sections.contains(key)
      if let setting = Setting.all.first(where: { $0.key == key }) {
        collect(setting, value, name.line)
      } else if isSection, case .mapping(let inner, _) = value {
        collect(inner, prefix: key + ".")
      } else if isSection {
        if !value.isNull { report("\(key) is a section, which contains settings, not a value", name.line) }
      } else {
        report(unknownNameMessage(key, knownNames: Setting.all.map(\.key) + Setting.sections), name.line)
      }
    }
  }

  private mutating func collect(_ setting: Setting, _ value: YAMLNode, _ line: Int) {
    let problem: String? =
      switch value {
      case .scalar where setting.isList: "takes a list, as in [a, b]"
      case .scalar where value.isNull: "has no value; remove the line for the default"
      case .scalar(let text, _, _): add(Value(texts: [text], line: line, itemLines: []), setting)
      case .list where !setting.isList: "takes one value, not a list"
      case .list(let items, _): add(items, line, setting)
      case .mapping: "takes \(setting.isList ? "a list" : "one value")"
      }
    if let problem {
      report("\(setting.key) \(problem)", line)
      invalidKeys.insert(setting.key)
    }
  }

  /// Adds the items of a list.
  /// - Returns: What is wrong with the list, if anything is.
  private mutating func add(_ items: [YAMLNode], _ line: Int, _ setting: Setting) -> String? {
    var texts: [String] = []
    for (index, item) in items.enumerated() {
      guard case .scalar(let text, _, _) = item, !item.isNull else { return "item \(index + 1) is not a single value" }
      texts.append(text)
    }
    return add(Value(texts: texts, line: line, itemLines: items.map(\.line)), setting)
  }

  private mutating func add(_ value: Value, _ setting: Setting) -> String? {
    values.updateValue(value, forKey: setting.key) == nil ? nil : "occurs twice"
  }

  private mutating func report(_ message: String, _ line: Int) {
    problems.append(SettingsProblem(line: line, "\(path), line \(line): \(message)"))
  }
}
