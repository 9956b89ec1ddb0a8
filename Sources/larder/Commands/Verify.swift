import ArgumentParser
import Storage

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Reads a backup from beginning to end, and tells whether it is intact.",
    discussion: """
      No server is needed. A file that is damaged or not whole is exit status 5, and the place is told. Prints what the backup is \
      of: lines on a terminal, else one line of JSON, {"store","engine","made","entries","bytes","intact"}; "bytes" are those of keys \
      and values. Of a damaged backup, it is what comes before the "offset" of the damage.

      Example: larder verify sessions.backup
      """)

  @Argument(help: "A file that 'larder backup' has written, or - for standard input.", completion: .file())
  var file: String

  func run() throws {
    var source = try BackupSource(path: file)
    var progress = Progress(total: source.size)
    do {
      while try source.next() != nil { progress.show(source.entries, done: source.offset) }
    } catch let damage as BackupDamage {
      progress.clear()
      if let header = source.header { try Self.tell(header, source, damage) }
      throw source.failure(
        damage, "use another one; 'larder restore STORE - < FILE' takes what comes before the damage")
    }
    progress.clear()
    if let header = source.header { try Self.tell(header, source, nil) }
  }

  private static func tell(_ header: BackupHeader, _ source: borrowing BackupSource, _ damage: BackupDamage?) throws {
    var output = Output()
    let made = HumanReadable.moment(milliseconds: header.made)
    guard !Output.isTerminal else {
      let amount = "\(HumanReadable.number(source.entries)) entries (\(HumanReadable.bytes(UInt64(source.byteCount))))"
      try output.writeLine("Store   \(header.store), kept by \(header.specification)")
      try output.writeLine("Made    \(made.date) \(made.time) UTC")
      try output.writeLine("Holds   \(amount)\(damage == nil ? "" : " before the damage")")
      return try output.writeLine(damage == nil ? "It is intact." : "It is damaged.")
    }
    output.bytes.append("{\"store\":")
    output.bytes.append(jsonString: header.store)
    output.bytes.append(",\"engine\":")
    output.bytes.append(jsonString: header.specification)
    output.bytes.append(contentsOf: ",\"made\":\"\(made.date)T\(made.time)Z\",\"entries\":\(source.entries)".utf8)
    output.bytes.append(contentsOf: ",\"bytes\":\(source.byteCount),\"intact\":\(damage == nil)".utf8)
    if let damage {
      output.bytes.append(contentsOf: ",\"offset\":\(damage.offset),\"damage\":".utf8)
      output.bytes.append(jsonString: damage.reason)
    }
    try output.writeLine("}")
  }
}
