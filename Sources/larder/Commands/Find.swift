import ArgumentParser
import Basics
import Documents
import Glibc
import Larder
import Platform

struct Find: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the documents that match a selector.",
    discussion: """
      A document is an entry whose value is a JSON object; other entries are skipped. A SELECTOR is JSON: \
      {"age":{"$gt":12}}. --where takes a predicate, age > 12, or a selector, which begins with a brace; with both, \
      documents match both. The fields "_id" and "_rev" are the key and the revision. Prints a table on a terminal, \
      otherwise each document as one line of JSON. With --format csv, the columns are those of --fields, in their order.

      The server uses the store's indexes, and examines the whole store if none of them helps. An index never changes \
      the result. --explain shows which are used and why, what was examined, and the index that would help.

      With --limit on a terminal, standard error says how to print the next page, if there is one: repeat the command \
      with the --bookmark that it shows. With --stats, standard error gets one line at the end; unless it is a \
      terminal, that is {"examinedKeys","examinedDocuments","returned","nanoseconds"}, with "bookmark" if there is a \
      next page, and "warnings" if there are any.

      If no document matches, or none has a field of the order or of --fields, larder asks the server whether any \
      document has the fields that the query names, and warns on standard error if not. --fields omits fields in the \
      elements of an array, such as items.sku: print the array, items, or a field of one element, items.0.sku.

      --count, --distinct, --group-by and --explain replace the documents; --explain also explains the other three. \
      Values of a field that is an array are its elements. A group is printed as {"by":{FIELD:VALUE,…},"count":…}, \
      without the fields that are missing. Groups are in the order of these fields, unless --sort names fields of \
      theirs or what is computed, as in count:desc.

      Example: larder find people '{"age":{"$gt":12}}' --sort name,-age --fields name,pet.species --limit 20
      Example: larder find people --where "age BETWEEN {12, 40} AND name BEGINSWITH[c] 'm'"
      Example: larder find people --group-by pet.species --compute count,avg:age --sort count:desc --limit 10
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "Which documents to print, as JSON. (default: all)")
  private var selector: String?

  @Option(
    name: .customLong("where"), parsing: .unconditional,
    help: ArgumentHelp(
      "A predicate, such as \"age > 12 AND pet.species = 'cat'\", or a selector that documents must match, too.",
      valueName: "predicate"))
  private var condition: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The fields to sort by, such as name,-age or [\"name\",{\"age\":\"desc\"}]. (default: _id)",
      valueName: "order"))
  private var sort: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The fields to print, such as name,pet.species or a JSON array of them. (default: whole documents)",
      valueName: "fields"))
  private var fields: String?

  @Option(
    parsing: .unconditional, help: "The number of matching documents to skip. (default: 0)",
    transform: WholeNumber.parse)
  private var skip: UInt32 = 0

  @Option(
    parsing: .unconditional, help: "The maximum number of documents to print; 0 for all. (default: all)",
    transform: WholeNumber.parse)
  private var limit: UInt32?

  @Option(parsing: .unconditional, help: "The bookmark of the last page with the same selector and sort.")
  private var bookmark: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The index to use, which must be complete and fit the query. (default: the server chooses)", valueName: "index"))
  private var useIndex: String?

  @Flag(help: "Print only the number of all matching documents.")
  private var count = false

  @Flag(help: "Print how the server finds the documents: as text on a terminal, otherwise as JSON.")
  private var explain = false

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Print the different values of this field, in order.", valueName: "field"))
  private var distinct: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Print a line for each group of documents with the same values of these fields.", valueName: "fields"))
  private var groupBy: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "What to compute from each group, such as count,sum:age,avg:age,min:age,max:age. (default: count)",
      valueName: "list"))
  private var compute: String?

  @OptionGroup private var time: FindTimeOption

  @Flag(help: "Print to standard error what was examined and returned, and the time this took.")
  private var stats = false

  @OptionGroup var outputOptions: OutputOptions

  func validate() throws {
    let replacements = [
      (count, "--count"), (explain, "--explain"), (distinct != nil, "--distinct"),
      (groupBy != nil || compute != nil, "--group-by"),
    ].filter(\.0).map(\.1)
    let exclusive = replacements.filter { $0 != "--explain" }
    guard exclusive.count < 2 else {
      throw ValidationError("\(exclusive[0]) can't be combined with \(exclusive[1])")
    }
    let isGrouped = groupBy != nil || compute != nil
    if let replacement = exclusive.first {
      guard skip == 0, limit == nil || isGrouped, bookmark == nil else {
        let options = isGrouped ? "--skip or --bookmark" : "--skip, --limit or --bookmark"
        throw ValidationError("\(replacement) can't be combined with \(options)")
      }
    }
    if distinct != nil || isGrouped {
      guard useIndex == nil, !stats, sort == nil || isGrouped, fields == nil else {
        let options = isGrouped ? "--use-index, --fields or --stats" : "--use-index, --sort, --fields or --stats"
        throw ValidationError("\(exclusive[0]) can't be combined with \(options)")
      }
    }
  }

  func run() async throws {
    let arguments = DocumentArguments(for: "find")
    let query = try query(arguments)
    try arguments.check(query)
    let store = time.apply(to: try connection.client().store(store.name))
    do {
      try await print(query, arguments, in: store)
    } catch let error as LarderError where error.kind == .illegalArgument && useIndex != nil {
      let names = try await store.indexes().map(\.index.name)
      let isKnown = useIndex.map(names.contains) ?? true
      let suggestion = isKnown ? nil : useIndex.flatMap { SpellingSuggestion.nearest(to: $0, of: names) }
      let list = "\(CommandFailure.question(suggestion))'larder index list \(self.store.name)' lists the indexes"
      throw CommandFailure(.refused, "the query can't use the index: \(error.message); \(list)")
    }
  }

  private func print(_ query: DocumentQuery, _ arguments: DocumentArguments, in store: RemoteStore) async throws {
    let isGrouped = distinct != nil || groupBy != nil || compute != nil
    if explain, !isGrouped { return try printExplanation(try await store.find(query, using: useIndex).explanation()) }
    if count { return try await printCount(of: query.selector, in: store) }
    if let distinct {
      let field = try arguments.field(distinct)
      if explain {
        return try printExplanation(try await store.explainGroups(of: query.selector, by: [field], computing: []))
      }
      let values = try await store.distinct(field, query.selector)
      try print(values, of: distinct)
      return await warn(
        about: query.selector, foundNothing: values.isEmpty, unseen: values.isEmpty ? [field] : [], in: store)
    }
    if groupBy != nil || compute != nil {
      let fields = try groupBy.map(arguments.fields) ?? []
      let aggregates = try compute.map(arguments.aggregates) ?? [.count]
      let order = try sort.map { text in try arguments.groupOrder(text, by: fields, computing: aggregates) } ?? []
      let limit = limit.flatMap { $0 == 0 ? nil : Int($0) }
      if explain {
        return try printExplanation(
          try await store.explainGroups(
            of: query.selector, by: fields, computing: aggregates, sortedBy: order, limit: limit))
      }
      let groups = try await store.groups(
        of: query.selector, by: fields, computing: aggregates, sortedBy: order, limit: limit)
      try print(groups, GroupOutput(fields, aggregates))
      let unseen = fields.indices.filter { index in groups.allSatisfy { $0.key[index] == nil } }.map { fields[$0] }
      return await warn(about: query.selector, foundNothing: groups.isEmpty, unseen: unseen, in: store)
    }
    try await printDocuments(of: query, in: store)
  }

  private func query(_ arguments: DocumentArguments) throws(CommandFailure) -> DocumentQuery {
    var query = DocumentQuery()
    if let selector = try arguments.selector(selector, where: condition) { query.selector = selector }
    if let sort, groupBy == nil, compute == nil {
      let fields = try arguments.sort(sort)
      if !count { query.sort = fields }
    }
    if let fields {
      let paths = try arguments.fields(fields)
      if !count { query.fields = paths }
    }
    query.skip = Int(skip)
    // Counting needs no documents.
    query.limit = count && !explain ? 0 : limit.flatMap { $0 == 0 ? nil : Int($0) }
    query.bookmark = bookmark
    return query
  }

  // MARK: Documents

  private func printDocuments(of query: DocumentQuery, in store: RemoteStore) async throws {
    var documents = store.find(query, using: useIndex).makeAsyncIterator()
    var unseen = try UnseenFields(query)
    if Output.showsRows {
      try await Self.writeTable(of: &documents, fields: query.fields, &unseen)
    } else {
      try await Self.writeLines(of: &documents, &unseen)
    }
    if let bookmark = documents.bookmark, isatty(STDERR_FILENO) == 1 { logLine("more: --bookmark \(bookmark)") }
    let warnings = await warnings(about: query, unseen, in: store)
    if let statistics = documents.statistics {
      printStatistics(statistics, bookmark: documents.bookmark, warnings: warnings)
    }
  }

  private func warnings(
    about query: DocumentQuery, _ unseen: UnseenFields, in store: RemoteStore
  ) async -> [String] {
    // A later page says nothing about the whole result.
    guard query.bookmark == nil, query.skip == 0 else { return [] }
    let foundNothing = unseen.documentCount == 0
    return await QueryAdvice(store, named: self.store.name).warnings(
      query.selector, foundNothing: foundNothing, unseen: unseen.sortedPaths,
      projected: foundNothing ? [] : unseen.projectedPaths)
  }

  private static func writeTable(
    of documents: inout RemoteStore.Find.AsyncIterator, fields: [FieldPath], _ unseen: inout UnseenFields
  ) async throws {
    var output = Output()
    var table = DocumentTable(fields)
    var isContinued = false
    while let document = try await documents.next() {
      unseen.examine(document)
      try table.add(document)
      guard let block = table.takeBlock() else { continue }
      try output.write(table: block, hasHeader: !isContinued, isWhole: false)
      isContinued = true
    }
    if table.isEmpty, Output.showsTables { return try output.writeLine("No documents match.") }
    let rest = table.takeText()
    if !rest.isEmpty { try output.write(table: rest, hasHeader: !isContinued, isWhole: !isContinued) }
  }

  private static func writeLines(
    of documents: inout RemoteStore.Find.AsyncIterator, _ unseen: inout UnseenFields
  ) async throws {
    var output = Output()
    while let document = try await documents.next() {
      unseen.examine(document)
      output.bytes += try document.json().withoutLineBreaks
      output.bytes.append(UInt8(ascii: "\n"))
      try output.flushIfLarge()
    }
    try output.flush()
  }

  /// Prints the warnings, and the statistics if they are asked for. A script gets both in one line.
  private func printStatistics(_ statistics: DocumentStatistics, bookmark: String? = nil, warnings: [String]) {
    let isForScript = stats && isatty(STDERR_FILENO) == 0
    if !isForScript { for warning in warnings { LarderCommand.warn(warning) } }
    guard stats else { return }
    let statistics = FindStatistics(statistics, bookmark: bookmark, warnings: warnings)
    logLine(isForScript ? statistics.json.description : statistics.text)
  }

  private func warn(
    about selector: Selector, foundNothing: Bool, unseen fields: [FieldPath] = [], in store: RemoteStore
  ) async {
    let advice = QueryAdvice(store, named: self.store.name)
    for warning in await advice.warnings(selector, foundNothing: foundNothing, unseen: fields) {
      LarderCommand.warn(warning)
    }
  }

  // MARK: What replaces the documents

  private func printCount(of selector: Selector, in store: RemoteStore) async throws {
    let (count, statistics) = try await store.countWithStatistics(selector, using: useIndex)
    var output = Output()
    try output.writeLine(String(count))
    let warnings = await QueryAdvice(store, named: self.store.name).warnings(selector, foundNothing: count == 0)
    printStatistics(statistics, warnings: warnings)
  }

  private func printExplanation(_ explanation: FindExplanation) throws {
    var output = Output()
    if Output.showsTables {
      try output.writeLine(ExplanationText(explanation.json, explanation.statistics, store: self.store.name).text)
    } else {
      var json = explanation.json
      json["statistics"] = FindStatistics(explanation.statistics).json
      try output.writeLine(json.description)
    }
  }

  private func print(_ values: [JSONValue], of field: String) throws {
    var output = Output()
    if Output.showsRows {
      var table = Table(header: [field])
      for value in values { table.add(value.cell) }
      return try output.write(table, orIfEmpty: "No documents have the field.")
    }
    for value in values {
      output.bytes += value.encoded()
      output.bytes.append(UInt8(ascii: "\n"))
      try output.flushIfLarge()
    }
    try output.flush()
  }

  private func print(_ groups: [DocumentGroup], _ form: GroupOutput) throws {
    var output = Output()
    if Output.showsRows {
      var table = form.table
      for group in groups { table.add(form.row(group)) }
      return try output.write(table, orIfEmpty: "No documents match.")
    }
    for group in groups {
      output.bytes += form.json(group).encoded()
      output.bytes.append(UInt8(ascii: "\n"))
      try output.flushIfLarge()
    }
    try output.flush()
  }
}
