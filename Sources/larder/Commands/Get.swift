import ArgumentParser
import Larder

struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the bytes of a value, and nothing else.",
    discussion: """
      A large value is read and printed in parts, so it takes little memory. If another client writes the entry \
      meanwhile, the output ends there, and the exit status is 3.

      On a terminal and in a script on standard input, adds a line feed unless the value ends in one. On a terminal, \
      escapes characters that would control it. If the key has no entry, the exit status is 1. Use 'larder get-many' to print the elements of a list.

      Example: larder get items apple
      Example: larder get pictures cat.png > cat.png
      Example: larder get pictures cat.png --range 0-1023
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var entry: StoreAndKeyArguments

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Print only these bytes: M-N from byte M through byte N, counted from 0; M- to the end; -N the last N bytes.",
      valueName: "range"),
    transform: ByteRange.parse)
  private var range: ByteRange?

  func run() async throws {
    let (name, key) = (entry.store.name, entry.key)
    guard let value = try await value(try connection.client().store(name)) else {
      throw CommandFailure(
        .notFound, "'\(name)' has no entry '\(key)'; 'larder page \(name) --keys-only' lists its keys")
    }
    let range = range ?? .from(0, through: nil)
    guard let offsets = range.offsets(inValueOf: value.byteCount) else {
      throw CommandFailure(.usage, "'\(key)' has only \(value.byteCount) bytes; choose a range that begins in them")
    }
    do {
      try await print(value.chunks(in: offsets))
    } catch LarderError.conditionFailed {
      throw CommandFailure(
        .refused, "'\(key)' was written while it was read; the output is incomplete, so run the command again")
    }
  }

  private func value(_ store: RemoteStore) async throws -> RemoteValue? {
    do throws(LarderError) {
      return try await store.value(entry.key)
    } catch {
      guard error.kind == .illegalArgument else { throw error }
      throw CommandFailure(
        .usage, "'\(entry.key)' is a list; 'larder get-many \(store.name) \(entry.key)' prints its elements")
    }
  }

  private func print(_ chunks: RemoteValue.Chunks) async throws {
    // What follows the value in a console or a script begins on a line of its own.
    let endsLine = Output.isTerminal || ConsoleSession.current != nil
    var output = ValueOutput()
    for try await chunk in chunks { try output.write(chunk) }
    try output.finish(endingLine: endsLine)
  }
}

/// Writes a value in parts, which can end anywhere. Owned by the command that prints it.
private struct ValueOutput: ~Copyable {
  /// The maximum number of bytes to escape for a terminal before looking for Ctrl-C.
  private static let maxPartCount = 16 << 10

  private var output = Output()
  /// The beginning of a character that the next part completes.
  private var rest: [UInt8] = []
  private var lastByte: UInt8?

  mutating func write(_ chunk: [UInt8]) throws {
    lastByte = chunk.last ?? lastByte
    guard Output.isTerminal else {
      output.bytes += chunk
      return try output.flush()
    }
    let bytes = rest + chunk
    var start = 0
    while start < bytes.count {
      try Task.checkCancellation()
      let limit = min(start + Self.maxPartCount, bytes.count)
      let end = EscapedText.endOfCharacters(in: bytes[start..<limit])
      if end == start { break }
      output.bytes += bytes[start..<end]
      try output.flush()
      start = end
    }
    rest = Array(bytes[start...])
  }

  consuming func finish(endingLine: Bool) throws {
    output.bytes += rest
    if endingLine, lastByte != UInt8(ascii: "\n") { output.bytes.append(UInt8(ascii: "\n")) }
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
