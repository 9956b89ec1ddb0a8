import Basics
import Configuration
import Foundation
import Platform
import Yams

/// A configuration file, read: YAML with a key for each setting, or a section for those whose names begin alike.
struct SettingsFile {
  let path: String
  let snapshot: YAMLSnapshot
  /// The lines of its settings, from 1.
  let lines: [String: Int]

  init(_ path: String) throws(SettingsError) {
    self.path = path
    let text: String
    do { text = try String(contentsOfFile: path, encoding: .utf8) } catch {
      throw SettingsError(["\(path): can't be read: \((error as NSError).localizedDescription)"])
    }
    let root: Node?
    do { root = try Yams.compose(yaml: text) } catch {
      throw SettingsError(["\(path): \(Self.oneLine("\(error)"))"])
    }
    var walk = Walk(path: path)
    if let root, root.null == nil {
      guard case .mapping(let mapping) = root else { throw SettingsError(["\(path): this is no list of settings"]) }
      walk.visit(mapping, under: "")
    }
    guard walk.problems.isEmpty else { throw SettingsError(walk.problems) }
    lines = walk.lines
    do {
      let yaml = walk.lines.isEmpty ? "{}" : text
      snapshot = unsafe try YAMLSnapshot(
        data: Array(yaml.utf8).span.bytes, providerName: path, parsingOptions: .default)
    } catch {
      throw SettingsError(["\(path): \(Self.oneLine("\(error)"))"])
    }
  }

  private static func oneLine(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).first.map(String.init) ?? text
  }

  /// The keys that a file has, each with its line, and what is wrong with them.
  private struct Walk {
    let path: String
    var lines: [String: Int] = [:]
    var problems: [String] = []

    mutating func visit(_ mapping: Node.Mapping, under prefix: String) {
      for (name, value) in mapping {
        let key = prefix + (name.string ?? "?")
        let line = name.mark?.line ?? 0
        let isSection = Setting.sections.contains(key)
        if let setting = Setting.all.first(where: { $0.key == key }) {
          note(setting, value, line)
        } else if isSection, case .mapping(let inner) = value {
          visit(inner, under: key + ".")
        } else if isSection {
          if value.null == nil {
            problems.append("\(path), line \(line): \(key) is a section, and takes settings below it")
          }
        } else {
          problems.append("\(path), line \(line): \(unknown(key, among: Setting.all.map(\.key) + Setting.sections))")
        }
      }
    }

    private mutating func note(_ setting: Setting, _ value: Node, _ line: Int) {
      let place = "\(path), line \(line): \(setting.key)"
      switch value {
      case .scalar where setting.isList: problems.append("\(place) takes a list, as in [a, b]")
      case .scalar where value.null != nil: problems.append("\(place) has no value; remove the line for the default")
      case .sequence where !setting.isList: problems.append("\(place) takes one value, not a list")
      case .scalar, .sequence:
        if lines.updateValue(line, forKey: setting.key) != nil { problems.append("\(place) is there twice") }
      default: problems.append("\(place) takes \(setting.isList ? "a list" : "one value")")
      }
    }
  }
}

/// Says that there is no such name, and which one is near.
func unknown(_ name: String, among names: [String]) -> String {
  "\(name) is not known" + (SpellingSuggestion.nearest(to: name, of: names).map { "; did you mean \($0)?" } ?? "")
}
