import Larder
import Platform

/// Finds the words that can complete a word in the console: commands, options, stores, keys and files.
struct Completer {
  private let session: ConsoleSession
  private let syntax = CommandSyntax.larder

  /// Longer than a local server needs, but short enough not to annoy a person.
  private static let timeout = Duration.milliseconds(400)
  /// The maximum number of keys to offer.
  static let maxKeyCount = 200

  /// What a word on the command line is.
  enum WordKind: Equatable {
    case command
    case option([String])
    case choice([String])
    case store
    case key(of: String)
    case file, folder
    case unknown
  }

  init(session: ConsoleSession) {
    self.session = session
  }

  /// Returns the words that begin with a prefix, sorted. The name of a folder ends in a slash.
  /// - Parameters:
  ///   - words: The words before the one to complete.
  ///   - prefix: The beginning of the word to complete.
  func candidates(after words: [String], prefix: String) async -> [String] {
    let found: [String]
    switch wordKind(after: words, prefix: prefix) {
    case .command:
      found = syntax.commands.map(\.commandName) + ConsoleCommand.allCases.map(\.rawValue).filter { $0 != "?" }
    case .option(let names), .choice(let names): found = names
    case .store: found = await stores()
    case .key(let store): found = await keys(of: store, prefix)
    case .file: found = Self.paths(prefix, foldersOnly: false)
    case .folder: found = Self.paths(prefix, foldersOnly: true)
    case .unknown: found = []
    }
    return Set(found.filter { $0.hasPrefix(prefix) && EscapedText.line($0) == $0 }).sorted()
  }

  /// Returns what the word after some words is.
  func wordKind(after words: [String], prefix: String) -> WordKind {
    var words = words[...]
    if words.first == LarderCommand.configuration.commandName { words.removeFirst() }
    if words.first == ConsoleCommand.format.rawValue {
      return words.count == 1 ? .choice(ConsoleSession.Format.allCases.map(\.rawValue)) : .unknown
    }
    if words.first == ConsoleCommand.help.rawValue {
      return words.count == 1 ? .choice(syntax.commands.map(\.commandName)) : .unknown
    }
    let position = CommandLinePosition(after: words)
    let store = position.argument(named: "store")
    if let option = position.pendingOption { return Self.wordKind(of: option, store) }
    let command = position.command
    if position.acceptsOptions, prefix.hasPrefix("-") {
      return .option(command.options.filter { $0.hasPrefix("--") })
    }
    let count = position.arguments.count
    if !command.commands.isEmpty {
      if count > 0 { return .unknown }
      return command.commandName == syntax.commandName ? .command : .choice(command.commands.map(\.commandName))
    }
    let positionals = command.positionals
    guard let argument = count < positionals.count ? positionals[count] : positionals.last,
      count < positionals.count || argument.isRepeating
    else { return .unknown }
    return Self.wordKind(of: argument, store)
  }

  private static func wordKind(of argument: CommandSyntax.Argument, _ store: String?) -> WordKind {
    switch (argument.completionKind, argument.valueName) {
    case (.list(let values), _): return .choice(values)
    case (.file, _): return .file
    case (.directory, _): return .folder
    case (_, "store"): return .store
    case (_, "key"), (_, "keys"), (_, "prefix"): return store.map { .key(of: $0) } ?? .unknown
    default: return .unknown
    }
  }

  // MARK: Candidates from the server

  private func stores() async -> [String] {
    let stores = try? await session.client.with(timeout: Self.timeout).stores()
    return stores?.map(\.name) ?? []
  }

  private func keys(of store: String, _ prefix: String) async -> [String] {
    let store = session.client.with(timeout: Self.timeout).store(store)
    guard let first = try? await store.page(limit: Self.maxKeyCount, prefix: prefix, keysOnly: true) else { return [] }
    // The longest common prefix of all keys is that of the first and the last key.
    let hasMore = first.count == Self.maxKeyCount
    let last = hasMore ? try? await store.page(limit: 1, prefix: prefix, reverse: true, keysOnly: true) : nil
    return (first + (last ?? [])).map(\.key)
  }

  // MARK: Candidates from the file system

  private static func paths(_ prefix: String, foldersOnly: Bool) -> [String] {
    let files = LocalFileSystem()
    let slash = prefix.lastIndex(of: "/")
    let typedFolder = slash.map { String(prefix[...$0]) } ?? ""
    let namePrefix = slash.map { String(prefix[prefix.index(after: $0)...]) } ?? prefix
    // The final dot resolves a link to a folder.
    let folder = absolutePath(typedFolder.isEmpty ? "." : typedFolder) + "/."
    guard let names = try? files.list(folder) else { return [] }
    return names.compactMap { name in
      guard name.hasPrefix(namePrefix), !name.hasPrefix(".") || namePrefix.hasPrefix(".") else { return nil }
      if (try? files.kind(of: "\(folder)/\(name)/.")) == .folder { return typedFolder + name + "/" }
      return foldersOnly ? nil : typedFolder + name
    }
  }
}

/// The effect of Tab on a line: it extends the word before the cursor, or shows the candidates.
enum Completion: Equatable {
  case none
  /// Replaces this number of Unicode scalars before the cursor with a text.
  case replace(scalars: Int, by: String)
  /// Prints lines.
  case show(String)

  /// The maximum number of candidates to show.
  private static let maxShownCount = 120

  /// - Parameters:
  ///   - word: The word at the end of the line; nil after white space.
  ///   - line: The line up to the cursor.
  ///   - candidates: The words that begin with the text of `word`.
  ///   - arePaths: Whether to show only the last components of the candidates.
  ///   - width: The terminal's width in columns.
  init(of word: CommandWords.Word?, in line: String, to candidates: [String], arePaths: Bool = false, width: Int) {
    guard let first = candidates.first else {
      self = .none
      return
    }
    let common = candidates.dropFirst().reduce(first) { Self.commonPrefix($0, $1) }
    if candidates.count == 1 || common.unicodeScalars.count > (word?.text ?? "").unicodeScalars.count {
      let isComplete = candidates.count == 1 && !common.hasSuffix("/")
      let scalars = word.map { line.unicodeScalars[$0.start...].count } ?? 0
      let text = CommandWords.quoted(common, with: word?.quote, isComplete: isComplete)
      self = .replace(scalars: scalars, by: text + (isComplete ? " " : ""))
    } else {
      let folder = arePaths ? common.lastIndex(of: "/").map { common[...$0] } ?? "" : ""
      self = .show(Self.columns(candidates.map { String($0.dropFirst(folder.count)) }, width: width))
    }
  }

  /// Arranges names in as many columns as fit.
  static func columns(_ names: [String], width: Int) -> String {
    let shown = names.prefix(maxShownCount).map { EscapedText.cut(EscapedText.line($0), to: width) }
    let columnWidth = (shown.map(EscapedText.width).max() ?? 0) + 2
    let columnCount = max(1, width / columnWidth)
    let rowCount = (shown.count + columnCount - 1) / columnCount
    var lines = (0..<rowCount).map { row in
      var line = ""
      for index in stride(from: row, to: shown.count, by: rowCount) {
        line += shown[index] + String(repeating: " ", count: columnWidth - EscapedText.width(shown[index]))
      }
      while line.last == " " { line.removeLast() }
      return line
    }
    if names.count > shown.count { lines.append("… and more") }
    return lines.joined(separator: "\n")
  }

  private static func commonPrefix(_ one: String, _ other: String) -> String {
    let common = zip(one.unicodeScalars, other.unicodeScalars).prefix { $0 == $1 }
    return String(String.UnicodeScalarView(common.map(\.0)))
  }
}
