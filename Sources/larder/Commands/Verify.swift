import ArgumentParser
import Storage

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Checks a backup for damage.",
    discussion: """
      Reads the whole file; no server is needed. If the file is damaged or incomplete, reports the position of the \
      damage, and the exit status is 5. Prints what the backup contains: text on a terminal, otherwise a line of JSON, \
      {"store","engine","made","indexes","entries","bytes","revision","intact"}, where "indexes" are definitions, "bytes" \
      counts keys and values, and the backup has all changes up to the "revision". For a damaged backup, the numbers \
      cover what precedes the "offset" of the damage.

      Example: larder verify sessions.backup
      """)

  @Argument(help: "A file that 'larder backup' wrote, or - for standard input.", completion: .file())
  private var file: String

  func run() throws {
    var input = try BackupInput(path: file)
    var progress = Progress(total: input.size)
    do {
      while try input.next() != nil { progress.show(input.entryCount, done: input.offset) }
    } catch let damage as BackupDamage {
      progress.clear()
      if let header = input.header { try Self.printSummary(header, input, damage) }
      throw input.failure(
        damage, "use another backup; 'larder restore STORE - < FILE' restores what precedes the damage")
    }
    progress.clear()
    if let header = input.header { try Self.printSummary(header, input, nil) }
  }

  private static func printSummary(
    _ header: BackupHeader, _ input: borrowing BackupInput, _ damage: BackupDamage?
  ) throws {
    var output = Output()
    let made = HumanReadable.dateAndTime(milliseconds: header.made)
    guard !Output.isTerminal else {
      let amount = "\(HumanReadable.amount(input.entryCount)) (\(HumanReadable.bytes(UInt64(input.byteCount))))"
      try output.writeLine("Store     \(header.store), engine \(header.specification)")
      try output.writeLine("Made      \(made.date) \(made.time) UTC")
      for index in header.indexes { try output.writeLine("Index     " + EscapedText.line("\(index)")) }
      try output.writeLine("Contains  \(amount)\(damage == nil ? "" : " before the damage")")
      if damage == nil { try output.writeLine("Revision  \(input.revision)") }
      return try output.writeLine(damage == nil ? "The backup is intact." : "The backup is damaged.")
    }
    output.bytes.append("{\"store\":")
    output.bytes.append(jsonString: header.store)
    output.bytes.append(",\"engine\":")
    output.bytes.append(jsonString: header.specification)
    let indexes = header.indexes.map { "\($0)" }.joined(separator: ",")
    output.bytes.append(contentsOf: ",\"made\":\"\(made.date)T\(made.time)Z\",\"indexes\":[\(indexes)]".utf8)
    output.bytes.append(contentsOf: ",\"entries\":\(input.entryCount)".utf8)
    output.bytes.append(contentsOf: ",\"bytes\":\(input.byteCount),\"revision\":\(input.revision)".utf8)
    output.bytes.append(contentsOf: ",\"intact\":\(damage == nil)".utf8)
    if let damage {
      output.bytes.append(contentsOf: ",\"offset\":\(damage.offset),\"damage\":".utf8)
      output.bytes.append(jsonString: damage.reason)
    }
    try output.writeLine("}")
  }
}
