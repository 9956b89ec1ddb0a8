import Basics
import LarderServer
import Platform
import Systemd

/// The settings of larderd. `SettingsLoader` reads them; `Setting` defines their keys.
package struct Settings: Sendable {
  package var server = ServerConfiguration(addresses: [])
  package var tls = TLSSettings()
  package var replication = ReplicationSettings()
  /// The path of the file of tokens; nil for no tokens.
  package var tokens: String?
  package var audit = AuditDestination.acts
  package var logLevel = LogLevel.info
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
    /// The lines of a list's items in the file, counted from 1; empty for values from elsewhere.
    private let itemLines: [Int]

    init(setting: Setting, texts: [String]?, source: Source, itemLines: [Int] = []) {
      (self.setting, self.texts, self.source, self.itemLines) = (setting, texts, source, itemLines)
    }

    /// Returns an error about this value.
    /// - Parameter item: The position of the list's item that the error is about; nil for the value as a whole.
    func problem(_ message: String, item: Int? = nil) -> SettingsProblem {
      let name = item.flatMap { setting.isList ? "\(setting.key), item \($0 + 1)" : nil } ?? setting.key
      guard case .file(let path, var line) = source else {
        return SettingsProblem("\(source.errorPrefix)\(name): \(message)")
      }
      if let item, item < itemLines.count { line = itemLines[item] }
      return SettingsProblem(line: line, "\(path), line \(line): \(name): \(message)")
    }
  }

  /// The values of all settings, in the order of `Setting.all`.
  package let values: [Value]
  package let settings: Settings

  /// - Parameters:
  ///   - problems: What is wrong with the sources of the values.
  ///   - invalidKeys: The keys whose values were left out because of that.
  /// - Throws: `SettingsError` with these problems and everything that is wrong with the values.
  init(
    _ values: [Value], problems: [SettingsProblem] = [], invalidKeys: Set<String> = []
  ) throws(SettingsError) {
    self.values = values
    var settings = Settings()
    var (problems, invalidKeys) = (problems, invalidKeys)
    var validItems: [String: [Int]] = [:]
    for value in values {
      guard let texts = value.texts else { continue }
      let errors = value.setting.apply(texts, to: &settings)
      problems += errors.map { value.problem("\($0.error)", item: $0.index) }
      if !errors.isEmpty, !value.setting.isList { invalidKeys.insert(value.setting.key) }
      validItems[value.setting.key] = texts.indices.filter { index in !errors.contains { $0.index == index } }
    }
    for contradiction in settings.contradictions where invalidKeys.isDisjoint(with: contradiction.keys) {
      guard let value = values.first(where: { $0.setting.key == contradiction.keys[0] }) else { continue }
      let item = contradiction.item.map { validItems[value.setting.key, default: []][$0] }
      problems.append(value.problem(contradiction.message, item: item))
    }
    guard problems.isEmpty else { throw SettingsError(SettingsProblem.inOrder(problems)) }
    self.settings = settings
  }

  /// What a server refuses unless systemd passes it a socket: access rules for listeners that `listen` doesn't have.
  package var requirements: [String] {
    guard let access = values.first(where: { $0.setting.key == "access" }) else { return [] }
    let addresses = Set(settings.server.addresses.map(\.description) + settings.server.listeners.map(\.description))
    return settings.server.accessRules.enumerated().compactMap { index, rule in
      guard let listener = rule.listener, !addresses.contains(listener) else { return nil }
      return access.problem("'\(listener)' must be the name or address of a socket that systemd passes", item: index)
        .text
    }
  }

  /// Checks the files of certificates, keys, tokens and the audit that the settings name, which the server opens when it
  /// starts.
  package func checkFiles() throws(SettingsError) {
    var problems: [String] = []
    func add(_ error: any Error, to key: String) {
      problems.append(values.first { $0.setting.key == key }?.problem("\(error)").text ?? "\(error)")
    }
    if !settings.tls.certificates.isEmpty {
      do throws(TLSFileError) { _ = try TLSCredentials(settings.tls) } catch { add(error, to: "tls.certificates") }
    }
    do throws(TokenFileError) { _ = try TokenTable(file: settings.tokens) } catch { add(error, to: "tokens") }
    if case .file(let path, _) = settings.audit, let complaint = RotatingFile.complaint(about: path) {
      add(AuditFileError(path: path, complaint), to: "audit")
    }
    if !problems.isEmpty { throw SettingsError(problems) }
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

/// One thing that is wrong with a configuration.
struct SettingsProblem: Sendable {
  /// The line of the file, counted from 1; 0 for a problem without a line.
  private let line: Int
  let text: String

  init(line: Int = 0, _ text: String) {
    (self.line, self.text) = (line, text)
  }

  /// Returns the texts of problems: first those without a line, then those of the file from top to bottom.
  static func inOrder(_ problems: [SettingsProblem]) -> [String] {
    problems.enumerated().sorted { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }.map(\.element.text)
  }
}

/// Everything that is wrong with a configuration.
package struct SettingsError: Error, Equatable, Sendable {
  package let problems: [String]

  init(_ problems: [String]) { self.problems = problems }
}

/// Returns an error about an unknown name, with the known name that is most similar.
func unknownNameMessage(_ name: String, knownNames: [String]) -> String {
  func lastPart(_ name: String) -> String { name.split(separator: ".").last.map(String.init) ?? name }
  var suggestion = SpellingSuggestion.nearest(to: name, of: knownNames)
  if suggestion == nil, let part = SpellingSuggestion.nearest(to: name, of: knownNames.map(lastPart)) {
    // The section is missing.
    suggestion = knownNames.first { lastPart($0) == part }
  }
  return "there is no setting \(name)" + (suggestion.map { "; did you mean \($0)?" } ?? "")
}
