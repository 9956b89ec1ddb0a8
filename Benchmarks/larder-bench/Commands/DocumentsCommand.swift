import ArgumentParser

struct DocumentsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "documents",
    abstract: "Compares work on documents and their indexes with Foundation, SQLite and goals.",
    discussion: """
      Measures JSON, selectors, sorting and indexes in this process, and finds and gets by its own larderd. SQLite has \
      indexes of expressions. Checks that both find the same documents. Takes up to four minutes and 1 GB of memory. A \
      goal that is not reached does not make the command fail.
      """)

  @OptionGroup private var options: BenchOptions
  @Option(help: ArgumentHelp("An empty database of PostgreSQL to compare with, as a URI.", valueName: "uri"))
  private var postgres: String?
  @Flag(help: "Measure only what is compared with PostgreSQL.")
  private var onlyPostgres = false

  func validate() throws {
    if onlyPostgres, postgres == nil { throw ValidationError("--only-postgres needs --postgres.") }
  }

  func run() throws {
    try options.run { (plan: inout DocumentsPlan) in
      if let repeats = options.repeats { plan.longRepeats = min(repeats, plan.longRepeats) }
    } measure: { plan, runner in
      try DocumentsBench(plan, runner).run(postgres: postgres, isOnlyPostgres: onlyPostgres)
    }
  }
}
