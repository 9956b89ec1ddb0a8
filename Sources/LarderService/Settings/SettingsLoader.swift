import Configuration

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
    var problems = unknownVariables
    var providers = [flagProvider, environmentProvider]
    do throws(SettingsError) {
      if let path { providers.append(try Self.fileProvider(path)) }
    } catch {
      problems += error.problems
    }
    var values: [ResolvedSettings.Value] = []
    for setting in Setting.all {
      do {
        let found = try providers.lazy.compactMap { try $0.value(of: setting) }.first
        values.append(found ?? ResolvedSettings.Value(setting: setting, texts: setting.defaultTexts, source: .default))
      } catch {
        problems.append("\(setting.key): \(error)")
      }
    }
    guard problems.isEmpty else { throw SettingsError(problems) }
    return try ResolvedSettings(values)
  }

  /// One source of settings.
  private struct Provider {
    private let snapshot: any ConfigSnapshot
    /// The components that precede every key.
    private let prefix: [String]
    private let source: (Setting) -> ResolvedSettings.Source

    init(
      _ snapshot: any ConfigSnapshot, prefix: [String] = [], source: @escaping (Setting) -> ResolvedSettings.Source
    ) {
      self.snapshot = snapshot
      self.prefix = prefix
      self.source = source
    }

    func value(of setting: Setting) throws -> ResolvedSettings.Value? {
      let key = AbsoluteConfigKey(prefix + setting.key.split(separator: ".").map(String.init))
      let found = try snapshot.value(forKey: key, type: setting.isList ? .stringArray : .string).value
      switch found?.content {
      case .string(let text): return .init(setting: setting, texts: [text], source: source(setting))
      case .stringArray(let texts): return .init(setting: setting, texts: texts, source: source(setting))
      default: return nil
      }
    }
  }

  private var flagProvider: Provider {
    var values: [AbsoluteConfigKey: ConfigValue] = [:]
    for setting in Setting.all {
      guard let texts = flags[setting.key] else { continue }
      let key = AbsoluteConfigKey(setting.key.split(separator: ".").map(String.init))
      values[key] = ConfigValue(setting.isList ? .stringArray(texts) : .string(texts[0]), isSecret: setting.isSecret)
    }
    return Provider(InMemoryProvider(values: values).snapshot()) { _ in .flag }
  }

  private var environmentProvider: Provider {
    // An empty variable counts as not set.
    let variables = environment.filter { !$0.value.isEmpty }
    let snapshot = EnvironmentVariablesProvider(environmentVariables: variables).snapshot()
    return Provider(snapshot, prefix: ["larderd"]) { .environment($0.variable) }
  }

  private static func fileProvider(_ path: String) throws(SettingsError) -> Provider {
    let file = try SettingsFile(path)
    return Provider(file.snapshot) { .file(path, line: file.line(of: $0.key)) }
  }

  private var unknownVariables: [String] {
    let known = Setting.all.map(\.variable)
    return environment.keys.filter { $0.hasPrefix(Setting.variablePrefix) && !known.contains($0) }.sorted()
      .map { "in the environment: \(unknownNameMessage($0, knownNames: known))" }
  }
}
