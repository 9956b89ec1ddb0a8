extension DurableReport {
  /// The table for people.
  var markdown: String {
    let contenders = contenders.map(\.markdown).joined(separator: "\n")
    return [heading, table, remarks, "## Contenders\n\n" + contenders].joined(separator: "\n\n") + "\n"
  }

  private var heading: String {
    """
    # Durable stores

    \(surroundings.date) · \(surroundings.commit) · Linux \(surroundings.kernel) · \(surroundings.cores) × \(surroundings.processor) · \
    \(fileSystem) · load average at the start \(decimal(surroundings.loadAverage, 2)) · \(Int(seconds)) s in all

    50 × 16 are \(settings.connections) connections over Unix sockets with \(settings.pipeline) requests under way on each; keys have \(BenchKey.size) \
    bytes, values \(settings.valueSize), and there are \(grouped(Double(settings.keys))) of them. One generator thread\
    \(settings.isPinned ? " with a processor to itself" : ""). \(settings.repeats) rounds; in each, every contender had \
    \(decimal(settings.secondsOfATurn, 2)) s, in turns. Cells are the median of the rounds (lowest–highest). \
    \(disturbance)
    """
  }

  private var disturbance: String {
    guard let most = othersLoads.last else { return "" }
    let median = othersLoads[othersLoads.count / 2]
    // What the kernel does for the disk is far less than that.
    let warning = median > 0.5 ? " **That is so much that the figures say little.**" : ""
    return "Other processes, those of the kernel included, took \(percent(median)) of a core in the median turn, and "
      + "\(percent(most)) at most.\(warning)"
  }

  private var table: String {
    var lines = [["Work", "Anchor", "Larder", "Larder ÷ anchor", "Goal", "Reached"]]
    for row in rows {
      lines.append([
        row.title, row.anchor.map { "\(name(of: $0, beside: row.larder)): \($0.cell)" } ?? "–", row.larder.cell,
        row.ratio.map { decimal($0, 3) } ?? "–", row.goal?.text ?? "–",
        row.isReached.map { $0 ? "yes" : "**no**" } ?? "–",
      ])
    }
    return MarkdownTable(lines).text
  }

  private func name(of anchor: MeasuredFigure, beside larder: MeasuredFigure) -> String {
    anchor.contender == larder.contender ? "not compacting" : anchor.contender
  }

  private var remarks: String {
    var lines = [
      "- Redis fsyncs its append-only file as its command line says, and rewrites it only for the restarts, which it can then read faster. "
        + "Larder compacts in all works.",
      "- *write and fdatasync* is one thread that writes as many bytes as the log's record of a set has, at the end of a file that grows, and "
        + "of one that has its space already, as the log's files do.",
    ]
    if let text = compactionRemark { lines.append(text) }
    if let garbage = figure(.garbage, Self.garbage) {
      lines.append(
        "- Bytes written: what the log wrote, compactions included, divided by the bytes of keys and values put; at full speed, while garbage "
          + "was \(garbage.cell) of the log. The system counts whole pages, and one anew each time that it is written to the disk."
      )
    }
    if figure(.restart, Self.firstGet) != nil {
      lines.append(
        "- Restart: from the start of the process to the answer of a get, with \(grouped(Double(settings.keysOfRestart))) keys, all processors, and "
          + "the files in the page cache. A hundredth of the keys was written just before the end.")
    }
    if figure(.single, Self.throughput, Contender.directoryStore) != nil {
      lines.append("- The directory store has \(grouped(Double(settings.keysOfDirectory))) keys.")
    }
    return lines.joined(separator: "\n")
  }

  private var compactionRemark: String? {
    guard let rate = figure(.quiet, Self.throughput), let without = figure(.quiet, Self.compactions),
      let with = figure(.compacting, Self.compactions), let bytes = figure(.compacting, Self.compactedBytes)
    else { return nil }
    let outcome =
      hasComparedCompaction ? "" : " **So there is nothing to compare; longer turns may have it.**"
    return
      "- Compaction: \(grouped(rate.median)) sets a second, of random ones of \(grouped(Double(settings.keysOfCompaction))) keys whose values "
      + "had \(grouped(Double(settings.valueSizeOfCompaction))) bytes before, which makes much garbage; latencies count from the planned times. "
      + "Turns without had \(Int(without.highest)) compactions at most, turns with \(Int(with.lowest)) at least, which rewrote "
      + "\(decimal(bytes.median / 1e6, 1)) MB a second.\(outcome)"
  }
}

extension DurableGoal {
  fileprivate var text: String { (isLeast ? "≥ " : "≤ ") + decimal(limit, 2) + (isOfRatio ? " ×" : "") }
}
