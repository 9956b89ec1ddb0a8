import Basics
import Configuration
import Foundation
import Platform
import Yams

/// A configuration file in YAML, with a key for each setting, or a section for settings whose keys begin alike.
struct SettingsFile {
  let snapshot: YAMLSnapshot
  private let lines: [String: Int]

  init(_ path: String) throws(SettingsError) {
    let text: String
    do { text = try String(contentsOfFile: path, encoding: .utf8) } catch {
      throw SettingsError(["\(path): can't be read: \((error as NSError).localizedDescription)"])
    }
    let root: Node?
    do { root = try Yams.compose(yaml: text) } catch {
      throw SettingsError(["\(path): \(Self.oneLine("\(error)"))"])
    }
    var collector = KeyCollector(path: path)
    if let root, root.null == nil {
      guard case .mapping(let mapping) = root else {
        throw SettingsError(["\(path): the file does not contain settings in the form KEY: VALUE"])
      }
      collector.collect(mapping, prefix: "")
    }
    guard collector.problems.isEmpty else { throw SettingsError(collector.problems) }
    lines = collector.lines
    do {
      let yaml = collector.lines.isEmpty ? "{}" : text
      snapshot = unsafe try YAMLSnapshot(
        data: Array(yaml.utf8).span.bytes, providerName: path, parsingOptions: .default)
    } catch {
      throw SettingsError(["\(path): \(Self.oneLine("\(error)"))"])
    }
  }

  /// Returns the line of a setting, from 1; 0 if the file does not contain it.
  func line(of key: String) -> Int { lines[key] ?? 0 }

  private static func oneLine(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).first.map(String.init) ?? text
  }

  /// Collects the keys of a file with their lines, and what is wrong with them.
  private struct KeyCollector {
    private let path: String
    private(set) var lines: [String: Int] = [:]
    private(set) var problems: [String] = []

    init(path: String) { self.path = path }

    mutating func collect(_ mapping: Node.Mapping, prefix: String) {
      for (name, value) in mapping {
        let key = prefix + (name.string ?? "?")
        let line = name.mark?.line ?? 0
        let isSection = Setting.sections.contains(key)
        if let setting = Setting.all.first(where: { $0.key == key }) {
          collect(setting, value, line)
        } else if isSection, case .mapping(let inner) = value {
          collect(inner, prefix: key + ".")
        } else if isSection {
          if value.null == nil {
            problems.append("\(path), line \(line): \(key) is a section, which contains settings, not a value")
          }
        } else {
          let message = unknownNameMessage(key, knownNames: Setting.all.map(\.key) + Setting.sections)
          problems.append("\(path), line \(line): \(message)")
        }
      }
    }

    private mutating func collect(_ setting: Setting, _ value: Node, _ line: Int) {
      let place = "\(path), line \(line): \(setting.key)"
      switch value {
      case .scalar where setting.isList: problems.append("\(place) takes a list, as in [a, b]")
      case .scalar where value.null != nil: problems.append("\(place) has no value; remove the line for the default")
      case .sequence where !setting.isList: problems.append("\(place) takes one value, not a list")
      case .scalar, .sequence:
        if lines.updateValue(line, forKey: setting.key) != nil { problems.append("\(place) occurs twice") }
      default: problems.append("\(place) takes \(setting.isList ? "a list" : "one value")")
      }
    }
  }
}
