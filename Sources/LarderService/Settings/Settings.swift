import Basics
import LarderServer
import Platform
import Systemd

/// The settings of larderd. `SettingsLoader` reads them; `Setting` defines their keys.
package struct Settings: Sendable {
  package var server = ServerConfiguration(addresses: [])
  package var logLevel = LogLevel.info

  /// Returns what is wrong with the combination of settings that are valid by themselves.
  func contradictions() -> [String] {
    let (limits, stores) = (server.limits, server.stores)
    var problems: [String] = []
    let maxStores = limits.maxFrameBytes / 192
    if limits.stores > maxStores {
      problems.append(
        "limits.stores: with this limits.frame-bytes it can be at most \(maxStores), "
          + "because the list of stores is one frame"
      )
    }
    if stores.count > limits.stores {
      problems.append("stores: there are \(stores.count), but limits.stores is \(limits.stores)")
    }
    for (index, store) in stores.enumerated() where stores[..<index].contains(where: { $0.name == store.name }) {
      problems.append("stores: \"\(store.name)\" occurs twice")
    }
    if server.dataPath == nil, let store = stores.first(where: { $0.specification.engine.isDurable }) {
      problems.append("stores: \"\(store.name)\" has a durable engine, which requires a data directory: set data")
    }
    return problems
  }
}

/// Settings together with the source of each value.
package struct ResolvedSettings: Sendable {
  package enum Source: Equatable, Sendable {
    case flag
    case environment(String)
    case file(String, line: Int)
    case `default`
  }

  package struct Value: Sendable {
    package let setting: Setting
    /// The value as a person writes it, one string for each element of a list; nil if it is not set.
    package let texts: [String]?
    package let source: Source
  }

  /// The values of all settings, in the order of `Setting.all`.
  package let values: [Value]
  package let settings: Settings

  init(_ values: [Value]) throws(SettingsError) {
    self.values = values
    var settings = Settings()
    var problems: [String] = []
    for value in values {
      guard let texts = value.texts else { continue }
      do { try value.setting.apply(texts, to: &settings) } catch {
        problems.append("\(value.source.errorPrefix)\(value.setting.key): \(error)")
      }
    }
    if problems.isEmpty { problems = settings.contradictions() }
    guard problems.isEmpty else { throw SettingsError(problems) }
    self.settings = settings
  }

  /// Applies what can change in a running server.
  /// - Parameter new: The settings that were read again.
  /// - Returns: The settings that are then in effect, the keys that changed, and the keys whose changes require a
  ///   restart.
  package func reloaded(
    _ new: ResolvedSettings
  ) throws(SettingsError) -> (settings: ResolvedSettings, changed: [String], pending: [String]) {
    var (next, changed, pending): ([Value], [String], [String]) = ([], [], [])
    for (old, new) in zip(values, new.values) {
      if old.texts == new.texts || !new.setting.isReloadable {
        if old.texts != new.texts { pending.append(old.setting.key) }
        next.append(old)
      } else {
        changed.append(new.setting.key)
        next.append(new)
      }
    }
    return (try ResolvedSettings(next), changed, pending)
  }
}

extension ResolvedSettings: CustomStringConvertible {
  /// An equivalent configuration file, with the source of each value as a comment and without secrets.
  package var description: String {
    values.map { value in
      let text = value.texts.map { value.setting.isSecret ? "(hidden)" : Self.yaml($0, isList: value.setting.isList) }
      let line = text.map { "\(value.setting.key): \($0)" } ?? "# \(value.setting.key) is not set"
      return "\(line)\(String(repeating: " ", count: max(0, 44 - line.count)))  # \(value.source)\n"
    }.joined()
  }

  private static func yaml(_ texts: [String], isList: Bool) -> String {
    let quoted = texts.map { text in
      let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
      return isPlain ? text : "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
    }
    return isList ? "[\(quoted.joined(separator: ", "))]" : quoted[0]
  }
}

extension ResolvedSettings.Source: CustomStringConvertible {
  package var description: String {
    switch self {
    case .flag: "flag"
    case .environment(let name): "environment, \(name)"
    case .file(let path, let line): "\(path), line \(line)"
    case .default: "default"
    }
  }

  /// The beginning of an error about a value from this source.
  fileprivate var errorPrefix: String {
    switch self {
    case .flag, .default: ""
    case .environment, .file: "\(self): "
    }
  }
}

/// Everything that is wrong with a configuration.
package struct SettingsError: Error, Equatable, Sendable {
  package let problems: [String]

  init(_ problems: [String]) { self.problems = problems }
}

/// Returns an error about an unknown name, with the known name that is most similar.
func unknownNameMessage(_ name: String, knownNames: [String]) -> String {
  let suggestion = SpellingSuggestion.nearest(to: name, of: knownNames)
  return "\(name) is not known" + (suggestion.map { "; did you mean \($0)?" } ?? "")
}
