import Larder

/// What a word that is being typed in the console may become.
struct Completer {
  let session: ConsoleSession
  let syntax = CommandSyntax.larder

  /// Longer than a server on the same machine takes, shorter than a person's patience.
  private static let patience = Duration.milliseconds(400)
  /// More keys help nobody to choose.
  static let maxKeyCount = 200

  /// What stands where the word is.
  enum Place: Equatable {
    case command
    case option([String])
    case choice([String])
    case store
    case key(of: String)
    case file, folder
    case nothing
  }

  /// - Parameters:
  ///   - words: those before it.
  ///   - prefix: what is typed of it.
  /// - Returns: whole words that begin with the prefix, in order. A folder ends with a slash.
  func candidates(_ words: [String], _ prefix: String) async -> [String] {
    let found: [String]
    switch place(words, prefix) {
    case .command:
      found = syntax.commands.map(\.commandName) + ConsoleWord.allCases.map(\.rawValue).filter { $0 != "?" }
    case .option(let names), .choice(let names): found = names
    case .store: found = await stores()
    case .key(let store): found = await keys(of: store, prefix)
    case .file: found = PathCompletion.candidates(prefix, foldersOnly: false)
    case .folder: found = PathCompletion.candidates(prefix, foldersOnly: true)
    case .nothing: found = []
    }
    return Set(found.filter { $0.hasPrefix(prefix) && EscapedText.line($0) == $0 }).sorted()
  }

  func place(_ words: [String], _ prefix: String) -> Place {
    var words = words[...]
    if words.first == LarderCommand.configuration.commandName { words.removeFirst() }
    if words.first == ConsoleWord.format.rawValue {
      return words.count == 1 ? .choice(ConsoleSession.Format.allCases.map(\.rawValue)) : .nothing
    }
    if words.first == ConsoleWord.help.rawValue {
      return words.count == 1 ? .choice(syntax.commands.map(\.commandName)) : .nothing
    }
    let place = walk(words)
    if let option = place.waitingOption { return self.place(of: option, place.store) }
    if place.takesOptions, prefix.hasPrefix("-") {
      return .option((place.command.arguments ?? []).flatMap(\.options).filter { $0.hasPrefix("--") })
    }
    if !place.command.commands.isEmpty {
      if place.count > 0 { return .nothing }
      return place.command.commandName == syntax.commandName
        ? .command : .choice(place.command.commands.map(\.commandName))
    }
    let positionals = place.command.positionals
    guard let argument = place.count < positionals.count ? positionals[place.count] : positionals.last,
      place.count < positionals.count || argument.isRepeating
    else { return .nothing }
    return self.place(of: argument, place.store)
  }

  private struct Walk {
    var command: CommandSyntax
    /// How many positional arguments were passed.
    var count = 0
    var store: String?
    /// The option whose value comes next.
    var waitingOption: CommandSyntax.Argument?
    var takesOptions = true
  }

  private func walk(_ words: ArraySlice<String>) -> Walk {
    var walk = Walk(command: syntax)
    for word in words {
      if walk.waitingOption.take() != nil { continue }
      if walk.takesOptions, word == "--" {
        walk.takesOptions = false
      } else if walk.takesOptions, word.hasPrefix("-"), word.count > 1 {
        if let option = walk.command.option(word), option.kind == .option { walk.waitingOption = option }
      } else if let next = walk.command.command(word) {
        walk.command = next
      } else {
        let positionals = walk.command.positionals
        if walk.count < positionals.count, positionals[walk.count].valueName == "store" { walk.store = word }
        walk.count += 1
      }
    }
    return walk
  }

  private func place(of argument: CommandSyntax.Argument, _ store: String?) -> Place {
    switch (argument.completionKind, argument.valueName) {
    case (.list(let values), _): return .choice(values)
    case (.file, _): return .file
    case (.directory, _): return .folder
    case (_, "store"): return .store
    case (_, "key"), (_, "keys"), (_, "prefix"): return store.map { .key(of: $0) } ?? .nothing
    default: return .nothing
    }
  }

  // MARK: From the server

  private func stores() async -> [String] {
    let stores = try? await session.client.with(timeout: Self.patience).stores()
    return stores?.map(\.name) ?? []
  }

  private func keys(of store: String, _ prefix: String) async -> [String] {
    let store = session.client.with(timeout: Self.patience).store(store)
    guard let first = try? await store.page(limit: Self.maxKeyCount, prefix: prefix, keysOnly: true) else { return [] }
    // What all of them begin with is what the first and the last have in common.
    let hasMore = first.count == Self.maxKeyCount
    let last = hasMore ? try? await store.page(limit: 1, prefix: prefix, reverse: true, keysOnly: true) : nil
    return (first + (last ?? [])).map(\.key)
  }
}
