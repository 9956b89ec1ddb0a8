import ArgumentParser
import Larder

struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the bytes of a value, and nothing else.",
    discussion: """
      On a terminal, adds a line feed at the end, and escapes characters that would control the terminal. If the key \
      has no entry, the exit status is 1. Use 'larder get-many' to print the elements of a list.

      Example: larder get items apple
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var entry: StoreAndKeyArguments

  func run() async throws {
    let name = entry.store.name
    guard let found = try await connection.client().store(name).get(entry.key) else {
      throw CommandFailure(
        .notFound, "'\(name)' has no entry '\(entry.key)'; 'larder page \(name) --keys-only' lists its keys")
    }
    guard let bytes = found.bytes else {
      throw CommandFailure(
        .usage, "'\(entry.key)' is a list; 'larder get-many \(name) \(entry.key)' prints its elements")
    }
    var output = Output()
    output.bytes = bytes
    if Output.isTerminal, !bytes.isEmpty, bytes.last != UInt8(ascii: "\n") { output.bytes.append(UInt8(ascii: "\n")) }
    try output.flush()
  }
}

struct GetMany: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints entries, one per line.",
    discussion: """
      \(EntryLine.helpWithTable)
      A key without an entry is printed as {"key","missing":true}. All entries come from the same snapshot of the \
      store, except that keys from a file are read in steps of up to 10,000.

      Example: larder get-many items apple pear
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @OptionGroup private var keys: KeysArguments

  @OptionGroup var outputOptions: OutputOptions

  func validate() throws { try keys.requireKeys() }

  func run() async throws {
    let requests = try await keys.requests()
    let store = try connection.client().store(store.name)
    var output = EntryOutput()
    for keys in requests {
      for (key, entry) in zip(keys, try await store.getMany(keys)) {
        if let entry { try output.add(entry) } else { try output.add(missing: key) }
      }
    }
    try output.finish()
  }
}
