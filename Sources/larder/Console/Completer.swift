import Documents
import Larder
import Platform

/// Finds the words that can complete a word in the console: commands, options, stores, keys, indexes, fields and files.
struct Completer {
  private let session: ConsoleSession
  private let syntax = CommandSyntax.larder
  private let fieldNames = FieldNames()

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
    case index(of: String)
    /// Fields with commas between them, of which those that `hasDirections` can have a dash for descending order.
    case fields(of: String, hasDirections: Bool)
    /// A selector or an update in JSON.
    case documentJSON(of: String, Operators)
    case file, folder
    case unknown
  }

  /// The operators in the JSON of a word.
  enum Operators: Equatable {
    case selector, update

    /// The names of operators among the members of an object.
    /// - Parameter path: The names that lead to the object.
    func names(under path: [String]) -> [String] {
      switch self {
      case .update: path.isEmpty ? ["$set", "$unset", "$inc", "$push"] : []
      case .selector: SelectorOperator.names(under: path)
      }
    }
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
    case .index(let store): found = await indexes(of: store)
    case .fields(let store, let hasDirections):
      let start = Self.start(ofLastFieldIn: prefix, hasDirections: hasDirections)
      found = await fields(of: store).map { start + $0.description }
    case .documentJSON(let store, let operators): found = await members(prefix, of: store, operators)
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
      return words.count == 1 ? .choice(OutputFormat.allCases.map(\.rawValue)) : .unknown
    }
    if words.first == ConsoleCommand.read.rawValue { return words.count == 1 ? .file : .unknown }
    if words.first == ConsoleCommand.help.rawValue {
      return words.count == 1 ? .choice(syntax.commands.map(\.commandName)) : .unknown
    }
    let position = CommandLinePosition(after: words)
    let store = position.argument(named: "store")
    if let option = position.pendingOption { return Self.wordKind(of: option, store) }
    let command = position.command
    let argument = position.nextArgument
    let canBeField = argument?.valueName == CommandLinePosition.fieldArgumentName && !prefix.hasPrefix("--")
    if position.acceptsOptions, prefix.hasPrefix("-"), !canBeField {
      return .option(command.options.filter { $0.hasPrefix("--") })
    }
    if !command.commands.isEmpty {
      if !position.arguments.isEmpty { return .unknown }
      return command.commandName == syntax.commandName ? .command : .choice(command.commands.map(\.commandName))
    }
    return argument.map { Self.wordKind(of: $0, store) } ?? .unknown
  }

  private static func wordKind(of argument: CommandSyntax.Argument, _ store: String?) -> WordKind {
    switch (argument.completionKind, argument.valueName) {
    case (.list(let values), _): return values.isEmpty ? .unknown : .choice(values)
    case (.file, _): return .file
    case (.directory, _): return .folder
    case (_, "store"): return .store
    case (_, "engine"): return .choice(EngineCompletion.specifications)
    default: return store.map { wordKind(of: argument, in: $0) } ?? .unknown
    }
  }

  /// Returns the kind of an argument whose values are in a store.
  private static func wordKind(of argument: CommandSyntax.Argument, in store: String) -> WordKind {
    switch argument.valueName {
    case "key", "keys", "prefix": .key(of: store)
    case "index": .index(of: store)
    case CommandLinePosition.fieldArgumentName: .fields(of: store, hasDirections: argument.kind == .positional)
    case "fields": .fields(of: store, hasDirections: false)
    case "order": .fields(of: store, hasDirections: true)
    case "selector", "predicate": .documentJSON(of: store, .selector)
    case "update": .documentJSON(of: store, .update)
    default: .unknown
    }
  }

  /// Returns the beginning of a word that its candidates have in common and that need not be shown: a folder, the
  /// fields before the last one, the JSON before a name.
  func sharedStart(of word: String, _ kind: WordKind) -> String {
    switch kind {
    case .file, .folder: word.lastIndex(of: "/").map { String(word[...$0]) } ?? ""
    case .fields(_, let hasDirections): Self.start(ofLastFieldIn: word, hasDirections: hasDirections)
    case .documentJSON: MemberPlace(atEndOf: word)?.head ?? ""
    default: ""
    }
  }

  private static func start(ofLastFieldIn fields: String, hasDirections: Bool) -> String {
    let start = fields.lastIndex(of: ",").map { fields[...$0] } ?? ""
    return start + (hasDirections && fields[start.endIndex...].hasPrefix("-") ? "-" : "")
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

  private func indexes(of store: String) async -> [String] {
    let indexes = try? await session.client.with(timeout: Self.timeout).store(store).indexes()
    return indexes?.map(\.index.name) ?? []
  }

  private func fields(of store: String) async -> [FieldPath] {
    let metadata = ["_id", "_rev"].map { FieldPath(names: [$0]) }
    let client = session.client.with(timeout: Self.timeout)
    return metadata + (await fieldNames.paths(in: client.store(store), named: store, timeout: Self.timeout))
  }

  /// Returns the words that add the name of a field or an operator to JSON.
  private func members(_ text: String, of store: String, _ operators: Operators) async -> [String] {
    guard let place = MemberPlace(atEndOf: text) else { return [] }
    let parents = place.path.filter { !$0.hasPrefix("$") }.compactMap { FieldPath($0)?.names }.joined()
    let fields = await fields(of: store).filter { $0.names.count > parents.count && $0.names.starts(with: parents) }
      .map { FieldPath(names: Array($0.names.dropFirst(parents.count))).description }
    // Operators are in the way of the fields unless a dollar sign asks for them.
    let names = place.name.hasPrefix("$") || fields.isEmpty ? operators.names(under: place.path) : fields
    return names.filter { $0.hasPrefix(place.name) && !$0.contains("\"") }.map(place.text(naming:))
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
  ///   - start: The beginning of the candidates not to show.
  ///   - width: The terminal's width in columns.
  init(of word: CommandWords.Word?, in line: String, to candidates: [String], after start: String = "", width: Int) {
    guard let first = candidates.first else {
      self = .none
      return
    }
    let common = candidates.dropFirst().reduce(first) { Self.commonPrefix($0, $1) }
    if candidates.count == 1 || common.unicodeScalars.count > (word?.text ?? "").unicodeScalars.count {
      // A folder and the name of a member are only the beginning of what comes next.
      let isComplete = candidates.count == 1 && !common.hasSuffix("/") && !common.hasSuffix("\":")
      let scalars = word.map { line.unicodeScalars[$0.start...].count } ?? 0
      let text = CommandWords.quoted(common, with: word?.quote, isComplete: isComplete)
      self = .replace(scalars: scalars, by: text + (isComplete ? " " : ""))
    } else {
      self = .show(Self.columns(candidates.map { String($0.dropFirst(start.count)) }, width: width))
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

extension SelectorOperator {
  /// Returns the names of the operators that can be members of an object in a selector.
  /// - Parameter path: The names that lead to the object.
  static func names(under path: [String]) -> [String] {
    let combining: Set<SelectorOperator> = [.and, .or, .nor]
    let ofDocuments = combining.union([.not, .expression])
    let isDocument = path.allSatisfy { name in combining.contains { $0.rawValue == name } || name == Self.not.rawValue }
    // There are no text indexes.
    return allCases.filter { $0 != .text }.filter {
      isDocument ? ofDocuments.contains($0) : !ofDocuments.contains($0) || $0 == .not
    }
    .map(\.rawValue)
  }
}
