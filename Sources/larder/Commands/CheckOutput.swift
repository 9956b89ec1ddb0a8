import Storage

/// Prints the reports of `larder check`: a table with remarks, or lines of JSON.
enum CheckOutput {
  static func print(_ reports: [StoreReport], in dir: String, salvagedTo out: String?) throws {
    var output = Output()
    guard Output.showsTables else {
      for report in reports { appendLine(report, to: &output.bytes) }
      return try output.flush()
    }
    guard !reports.isEmpty else { return try output.writeLine("There are no stores in \(dir).") }
    try output.writeLine(table(reports))
    for report in reports {
      for text in report.damage.map(describe) + report.remarks { try output.writeLine(line(report, text)) }
    }
    guard let out else { return }
    for report in reports { try output.writeLine(line(report, salvageSummary(report, out))) }
  }

  // MARK: For people

  private static func line(_ report: StoreReport, _ text: String) -> String {
    LarderCommand.oneLine("\(report.name): \(text)")
  }

  private static func table(_ reports: [StoreReport]) -> String {
    var table = Table("STORE", "ENGINE", "FILES", "CONTENTS", "INDEXES", "BYTES", "REVISION", "STATE")
    for report in reports {
      table.add(
        report.name, report.engine?.name ?? "-", String(report.files),
        amount(report.count, report.engine), String(report.indexCount),
        HumanReadable.bytes(UInt64(report.byteCount)), String(report.revision), report.isIntact ? "intact" : "DAMAGED")
    }
    return table.text
  }

  private static func amount(_ count: Int, _ engine: EngineKind?) -> String {
    let item = engine?.countedItem ?? (singular: "entry", plural: "entries")
    return "\(HumanReadable.number(count)) \(count == 1 ? item.singular : item.plural)"
  }

  private static func describe(_ damage: StoreReport.Damage) -> String {
    guard let offset = damage.offset else { return "\(damage.path): \(damage.reason)" }
    return "\(damage.path) is damaged at byte \(offset): \(damage.reason)"
  }

  private static func salvageSummary(_ report: StoreReport, _ out: String) -> String {
    guard let salvage = report.salvage else { return "nothing could be copied" }
    var lost: [String] = []
    if salvage.lostBytes > 0 { lost.append(HumanReadable.bytes(UInt64(salvage.lostBytes)) + " of records") }
    if salvage.lostEntries > 0 { lost.append(amount(salvage.lostEntries, nil)) }
    if salvage.lostFiles > 0 { lost.append(salvage.lostFiles == 1 ? "a segment" : "\(salvage.lostFiles) segments") }
    if lost.isEmpty, !report.isIntact { lost.append("what the damage above affects") }
    let loss = lost.isEmpty ? "nothing was lost" : "lost: \(lost.joined(separator: ", "))"
    return "copied \(amount(salvage.copied, report.engine)) to \(out); \(loss)"
  }

  // MARK: For programs

  private static func appendLine(_ report: StoreReport, to bytes: inout [UInt8]) {
    bytes.append("{\"store\":")
    bytes.append(jsonString: report.name)
    bytes.append(",\"engine\":")
    bytes.append(report.engine.map { "\"\($0.name)\"" } ?? "null")
    bytes.append(",\"files\":\(report.files),\"\(report.engine?.countedItem.plural ?? "entries")\":\(report.count)")
    bytes.append(",\"indexes\":\(report.indexCount),\"bytes\":\(report.byteCount)")
    bytes.append(",\"revision\":\(report.revision),\"intact\":\(report.isIntact)")
    bytes.append(",\"damage\":[")
    for (index, damage) in report.damage.enumerated() {
      bytes.append(index == 0 ? "{\"file\":" : ",{\"file\":")
      bytes.append(jsonString: damage.path)
      if let offset = damage.offset { bytes.append(",\"offset\":\(offset)") }
      bytes.append(",\"what\":")
      bytes.append(jsonString: damage.reason)
      bytes.append("}")
    }
    bytes.append("],\"remarks\":[")
    for (index, remark) in report.remarks.enumerated() {
      if index > 0 { bytes.append(",") }
      bytes.append(jsonString: remark)
    }
    bytes.append("]")
    if let salvage = report.salvage {
      bytes.append(",\"copied\":\(salvage.copied),\"lostBytes\":\(salvage.lostBytes)")
      bytes.append(",\"lostEntries\":\(salvage.lostEntries),\"lostFiles\":\(salvage.lostFiles)")
    }
    bytes.append("}\n")
  }
}

extension [UInt8] {
  fileprivate mutating func append(_ text: String) { append(contentsOf: text.utf8) }
}
