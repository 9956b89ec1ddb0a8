import Basics

/// Reads the settings from flags, environment variables and a configuration file. Flags override the environment, which
/// overrides the file, which overrides the defaults.
package struct SettingsLoader: Sendable {
  /// The values of flags, by the key that each flag sets.
  private let flags: [String: [String]]
  private let environment: [String: String]
  /// The path of the configuration file, if there is one.
  private let path: String?

  package init(flags: [String: [String]] = [:], environment: [String: String] = [:], path: String? = nil) {
    self.flags = flags
    self.environment = environment
    self.path = path
  }

  /// Reads all settings. Each call reads the file again.
  /// - Throws: `SettingsError` with everything that is wrong.
  package func load() throws(SettingsError) -> ResolvedSettings {
    var problems = unknownVariables.map { SettingsProblem($0) }
    var file: SettingsFile?
    var invalidKeys: Set<String> = []
    do throws(SettingsError) {
      file = if let path { try SettingsFile(path) } else { nil }
      problems += file?.problems ?? []
      invalidKeys = file?.invalidKeys ?? []
    } catch {
      problems += error.problems.map { SettingsProblem($0) }
      // What the file would have set is unknown.
      invalidKeys = Set(Setting.all.map(\.key))
    }
    let values = Setting.all.map { value(of: $0, in: file) }
    return try ResolvedSettings(values, problems: problems, invalidKeys: invalidKeys)
  }

  private func value(of setting: Setting, in file: SettingsFile?) -> ResolvedSettings.Value {
    if let texts = flags[setting.key] { return .init(setting: setting, texts: texts, source: .flag) }
    // An empty variable counts as not set.
    if let text = environment[setting.variable], !text.isEmpty {
      let texts = setting.isList ? text.split(separator: ",").map { Self.trimmed($0) } : [text]
      return .init(setting: setting, texts: texts, source: .environment(setting.variable))
    }
    if let path, let value = file?[setting] {
      return .init(
        setting: setting, texts: value.texts, source: .file(path, line: value.line), itemLines: value.itemLines)
    }
    return .init(setting: setting, texts: setting.defaultTexts, source: .default)
  }

  private static func trimmed(_ text: Substring) -> String {
    let start = text.drop(while: \.isWhitespace)
    return String(start.dropLast(start.reversed().prefix(while: \.isWhitespace).count))
  }

  private var unknownVariables: [String] {
    let known = Setting.all.map(\.variable)
    return environment.keys.filter { $0.hasPrefix(Setting.variablePrefix) && !known.contains($0) }.sorted()
      .map { "in the environment: \(unknownNameMessage($0, knownNames: known))" }
  }
}
