import Configuration

/// Where settings come from: flags go before the environment, that before the file, and that before what is built in.
package struct SettingsSource: Sendable {
  /// The values of the flags that were given, by the key that each sets.
  package var flags: [String: [String]]
  package var environment: [String: String]
  /// Of the configuration file, if there is one.
  package var path: String?

  package init(flags: [String: [String]] = [:], environment: [String: String] = [:], path: String? = nil) {
    self.flags = flags
    self.environment = environment
    self.path = path
  }

  /// Reads all of it, anew each time.
  /// - Throws: everything that is wrong with it.
  package func read() throws(SettingsError) -> ReadSettings {
    var problems = unknownVariables
    var layers = [flagLayer, environmentLayer]
    do throws(SettingsError) {
      if let path { layers.append(try fileLayer(path)) }
    } catch {
      problems += error.problems
    }
    var values: [ReadSettings.Value] = []
    for setting in Setting.all {
      do {
        let found = try layers.lazy.compactMap { try $0.value(of: setting) }.first
        values.append(found ?? ReadSettings.Value(setting: setting, texts: setting.standard, origin: .standard))
      } catch {
        problems.append("\(setting.key): \(error)")
      }
    }
    guard problems.isEmpty else { throw SettingsError(problems) }
    return try ReadSettings(values)
  }

  /// One of the places that settings come from.
  private struct Layer {
    let snapshot: any ConfigSnapshot
    /// What its keys begin with.
    var prefix: [String] = []
    let origin: (Setting) -> ReadSettings.Origin

    func value(of setting: Setting) throws -> ReadSettings.Value? {
      let key = AbsoluteConfigKey(prefix + setting.key.split(separator: ".").map(String.init))
      let found = try snapshot.value(forKey: key, type: setting.isList ? .stringArray : .string).value
      switch found?.content {
      case .string(let text): return .init(setting: setting, texts: [text], origin: origin(setting))
      case .stringArray(let texts): return .init(setting: setting, texts: texts, origin: origin(setting))
      default: return nil
      }
    }
  }

  private var flagLayer: Layer {
    var values: [AbsoluteConfigKey: ConfigValue] = [:]
    for setting in Setting.all {
      guard let texts = flags[setting.key] else { continue }
      let key = AbsoluteConfigKey(setting.key.split(separator: ".").map(String.init))
      values[key] = ConfigValue(setting.isList ? .stringArray(texts) : .string(texts[0]), isSecret: setting.isSecret)
    }
    return Layer(snapshot: InMemoryProvider(values: values).snapshot()) { _ in .flag }
  }

  private var environmentLayer: Layer {
    // A variable that is empty says nothing.
    let variables = environment.filter { !$0.value.isEmpty }
    let snapshot = EnvironmentVariablesProvider(environmentVariables: variables).snapshot()
    return Layer(snapshot: snapshot, prefix: ["larderd"]) { .environment($0.variable) }
  }

  private func fileLayer(_ path: String) throws(SettingsError) -> Layer {
    let file = try SettingsFile(path)
    return Layer(snapshot: file.snapshot) { .file(path, line: file.lines[$0.key] ?? 0) }
  }

  private var unknownVariables: [String] {
    let known = Setting.all.map(\.variable)
    return environment.keys.filter { $0.hasPrefix(Setting.variablePrefix) && !known.contains($0) }.sorted()
      .map { "in the environment: \(unknown($0, among: known))" }
  }
}
