extension ComparisonReport {
  /// The tables for people.
  var markdown: String {
    let works = distinct(figures.filter { $0.figure == Self.cpu }.map(\.work))
    return [
      heading,
      table("Server CPU a request, in µs", Self.cpu, works),
      table("Server CPU a key, in µs", Self.cpuOfKey, works),
      table("Requests a second, in a closed loop", Self.throughput, works),
      latencyTable,
      workerTable,
      table("Memory an entry beyond key and value, in bytes", Self.memory, [Self.loading]),
      contenderList,
    ].joined(separator: "\n\n") + "\n"
  }

  private var heading: String {
    """
    # Larder and its peers

    \(surroundings.date) · \(surroundings.commit) · Linux \(surroundings.kernel) · \(surroundings.cores) × \(surroundings.processor) · load \
    average at the start \(decimal(surroundings.loadAverage, 2)) · \(Int(seconds)) s in all

    \(settings.connections) connections over Unix sockets, \(grouped(Double(settings.keys))) uniform keys of \(BenchKey.size) bytes, values of \
    \(settings.valueSize) bytes, one generator thread\(settings.isPinned ? " with a processor to itself" : ""). \(settings.repeats) rounds; in each, every contender had \
    \(decimal(settings.secondsOfATurn, 2)) s for each work, in turns. Cells are the median of the rounds (lowest–highest). \
    Of \(turns) turns \(retakenTurns) were repeated because other processes took more than \(percent(ServerUse.disturbance)) of a core \
    meanwhile; \(disturbedTurns) were kept although they did.
    """
  }

  private func table(_ title: String, _ name: String, _ works: [String]) -> String {
    let names = contenders.map(\.name)
    var rows = [["Work"] + names + ["Larder ÷ best peer", "Larder ÷ echo"]]
    for work in works {
      guard let larder = figure(work, name, Contender.larder) else { continue }
      rows.append(
        [work] + names.map { cell(figure(work, name, $0)) } + [
          ratio(larder, bestPeer(work, name)), ratio(larder, figure(work, name, Contender.echo)),
        ])
    }
    return "## \(title)\n\n" + MarkdownTable(rows).text
  }

  private var latencyTable: String {
    var rows = [["Contender", "p50", "p90", "p99", "p99.9", "p99.99", "max", "p99 by turn"]]
    for contender in contenders.map(\.name) {
      guard let latency = latencies[contender] else { continue }
      let points = [latency.p50, latency.p90, latency.p99, latency.p999, latency.p9999, latency.max]
      rows.append([contender] + points.map(grouped) + [cell(figure(Self.compared, Self.p99, contender))])
    }
    return """
      ## Latency of get in µs, at \(percent(settings.comparedLoad)) of the best peer's peak: \
      \(grouped(peakRate * settings.comparedLoad)) requests a second

      \(MarkdownTable(rows).text)

      Counted from the planned time of each request, so that a stall is not hidden. All turns together, but for the last column, which has \
      the median of the turns: a virtual machine that is not run for some milliseconds is in every turn's maximum, and in some turns' p99.
      """
  }

  /// Server CPU a request and throughput with one worker and with two.
  private var workerTable: String {
    var rows = [["Work"] + workerSetups.map { "\($0): µs" } + workerSetups.map { "\($0): requests/s" }]
    for work in distinct(figures.filter { $0.contender == workerSetups.first }.map(\.work)) {
      rows.append(
        [work] + workerSetups.map { cell(figure(work, Self.cpu, $0)) }
          + workerSetups.map { cell(figure(work, Self.throughput, $0)) })
    }
    return "## More workers: server CPU a request, and requests a second\n\n" + MarkdownTable(rows).text
  }

  private var contenderList: String { "## Contenders\n\n" + contenders.map(\.markdown).joined(separator: "\n") }

  private func cell(_ figure: MeasuredFigure?) -> String { figure?.cell ?? "–" }

  private func ratio(_ one: MeasuredFigure, _ other: MeasuredFigure?) -> String {
    guard let other, other.median != 0 else { return "–" }
    let name = other.contender == Contender.echo ? "" : " (\(other.contender))"
    return decimal(one.median / other.median, 2) + name
  }
}

extension ComparisonReport.Description {
  var markdown: String { "- \(name)\(version.isEmpty ? "" : " (\(version))"): `\(commandLine)`" }
}

/// The values in their order, each once.
private func distinct(_ values: [String]) -> [String] {
  var seen: Set<String> = []
  return values.filter { seen.insert($0).inserted }
}
