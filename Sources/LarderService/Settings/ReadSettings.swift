/// Settings as they were read, each with where it comes from.
package struct ReadSettings: Sendable {
  package enum Origin: Equatable, Sendable {
    case flag
    case environment(String)
    case file(String, line: Int)
    case standard
  }

  package struct Value: Sendable {
    package let setting: Setting
    /// As people write it; nil for what is not set.
    package let texts: [String]?
    package let origin: Origin
  }

  /// One for each setting, in the order of `Setting.all`.
  package private(set) var values: [Value]
  package private(set) var settings = Settings()

  init(_ values: [Value]) throws(SettingsError) {
    self.values = values
    var problems: [String] = []
    for value in values {
      guard let texts = value.texts else { continue }
      do { try value.setting.apply(texts, &settings) } catch {
        problems.append("\(value.origin.place)\(value.setting.key): \(error)")
      }
    }
    if problems.isEmpty { problems = settings.contradictions() }
    guard problems.isEmpty else { throw SettingsError(problems) }
  }

  /// What these settings become under a server that runs: of `new`, only what can change without a restart.
  /// - Returns: also the keys that changed, and those that would have to wait for a restart.
  package func reloaded(
    _ new: ReadSettings
  ) throws(SettingsError) -> (settings: ReadSettings, changed: [String], waiting: [String]) {
    var (next, changed, waiting): ([Value], [String], [String]) = ([], [], [])
    for (old, new) in zip(values, new.values) {
      if old.texts == new.texts || !new.setting.isReloaded {
        if old.texts != new.texts { waiting.append(old.setting.key) }
        next.append(old)
      } else {
        changed.append(new.setting.key)
        next.append(new)
      }
    }
    return (try ReadSettings(next), changed, waiting)
  }
}

extension ReadSettings: CustomStringConvertible {
  /// A configuration file that says the same, with each value's origin as a comment and secrets left out.
  package var description: String {
    values.map { value in
      let text = value.texts.map { value.setting.isSecret ? "(hidden)" : value.setting.yaml($0) }
      let line = text.map { "\(value.setting.key): \($0)" } ?? "# \(value.setting.key) is not set"
      return "\(line.padding(to: 44))  # \(value.origin)\n"
    }.joined()
  }
}

extension ReadSettings.Origin: CustomStringConvertible {
  package var description: String {
    switch self {
    case .flag: "flag"
    case .environment(let name): "environment, \(name)"
    case .file(let path, let line): "\(path), line \(line)"
    case .standard: "default"
    }
  }

  /// What begins a complaint about a value.
  fileprivate var place: String {
    switch self {
    case .flag, .standard: ""
    case .environment, .file: "\(self): "
    }
  }
}

extension Setting {
  fileprivate func yaml(_ texts: [String]) -> String {
    let quoted = texts.map { text in
      let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
      return isPlain ? text : "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
    }
    return isList ? "[\(quoted.joined(separator: ", "))]" : quoted[0]
  }
}

extension String {
  fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}

/// Everything that is wrong with a configuration.
package struct SettingsError: Error, Equatable, Sendable {
  package let problems: [String]

  init(_ problems: [String]) { self.problems = problems }
}
