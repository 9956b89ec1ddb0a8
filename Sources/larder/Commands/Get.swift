import ArgumentParser
import Larder

struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the bytes of a value, and nothing else.",
    discussion: """
      On a terminal a line feed is put at its end, and what would steer the terminal is shown as an escape. A key that has no entry \
      is exit status 1. Of a list, 'larder get-many' shows the elements.

      Example: larder get items apple
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var entry: StoreAndKeyArguments

  func run() async throws {
    let name = entry.store.name
    guard let found = try await connection.client().store(name).get(entry.key) else {
      throw CommandFailure(
        .notFound, "'\(name)' has no entry '\(entry.key)'; 'larder page \(name) --keys-only' shows keys it has")
    }
    guard let bytes = found.bytes else {
      throw CommandFailure(
        .usage, "'\(entry.key)' is a list; 'larder get-many \(name) \(entry.key)' shows its elements")
    }
    var output = Output()
    output.bytes = bytes
    if Output.isTerminal, !bytes.isEmpty, bytes.last != UInt8(ascii: "\n") { output.bytes.append(UInt8(ascii: "\n")) }
    try output.flush()
  }
}

struct GetMany: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints entries, a line each.",
    discussion: """
      \(EntryLine.helpWithTable)
      A key that has no entry is {"key","missing":true}. All entries are shown as they were at one moment.

      Example: larder get-many items apple pear
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

  @Argument(help: "The entries' keys.", transform: KeyRule.check)
  var keys: [String]

  func run() async throws {
    let entries = try await connection.client().store(store.name).getMany(keys)
    var output = Output()
    if Output.showsTables {
      var table = EntryTable()
      for (key, entry) in zip(keys, entries) {
        if let entry { table.add(entry) } else { table.add(missing: key) }
      }
      return try output.writeLine(table.text)
    }
    for (key, entry) in zip(keys, entries) {
      if let entry {
        EntryLine.append(entry, to: &output.bytes)
      } else {
        EntryLine.append(missing: key, to: &output.bytes)
      }
      try output.flushIfLarge()
    }
    try output.flush()
  }
}
