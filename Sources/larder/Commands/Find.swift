import ArgumentParser
import Documents
import Glibc
import Larder
import Platform

struct Find: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the documents that match a selector.",
    discussion: """
      A document is an entry whose value is a JSON object; other entries are skipped. A selector is JSON: \
      {"age":{"$gt":12}}. Its fields "_id" and "_rev" are the key and the revision. Prints a table on a terminal, \
      otherwise each document as one line of JSON. The server examines the whole store.

      With --limit on a terminal, standard error says how to print the next page, if there is one: repeat the command \
      with the --bookmark that it shows.

      Example: larder find people '{"age":{"$gt":12}}' --sort name,-age --fields name,pet.species --limit 20
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "Which documents to print, as JSON. (default: all)")
  private var selector: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The fields to sort by, such as name,-age or [\"name\",{\"age\":\"desc\"}]. (default: _id)",
      valueName: "fields"))
  private var sort: String?

  @Option(
    parsing: .unconditional,
    help: "The fields to print, such as name,pet.species or a JSON array of them. (default: whole documents)")
  private var fields: String?

  @Option(help: "The number of matching documents to skip.")
  private var skip: UInt32 = 0

  @Option(help: "The maximum number of documents to print; 0 for all. (default: all)")
  private var limit: UInt32?

  @Option(parsing: .unconditional, help: "Where the last page of the same selector and sort ended.")
  private var bookmark: String?

  @Flag(help: "Print only the number of all matching documents.")
  private var count = false

  @Flag(help: "Print to standard error how many documents were examined and returned, and the time this took.")
  private var stats = false

  func validate() throws {
    if count && (skip > 0 || limit != nil || bookmark != nil) {
      throw ValidationError("--count can't be combined with --skip, --limit or --bookmark")
    }
  }

  func run() async throws {
    let query = try query()
    // A query that can't be evaluated is refused before the server is asked.
    _ = try Self.reading("selector") { () throws(SelectorError) in try DocumentFinder(query) }
    let store = try connection.client().store(store.name)
    if count {
      let (count, statistics) = try await store.countWithStatistics(query.selector)
      var output = Output()
      try output.writeLine(String(count))
      if stats { logLine(Self.text(statistics)) }
      return
    }
    var documents = store.find(query).makeAsyncIterator()
    if Output.showsTables {
      try await Self.writeTable(of: &documents, fields: query.fields)
    } else {
      try await Self.writeLines(of: &documents)
    }
    if let bookmark = documents.bookmark, isatty(STDERR_FILENO) == 1 { logLine("more: --bookmark \(bookmark)") }
    if stats, let statistics = documents.statistics { logLine(Self.text(statistics)) }
  }

  private static func writeTable(of documents: inout RemoteStore.Find.AsyncIterator, fields: [FieldPath]) async throws {
    var output = Output()
    var table = DocumentTable(fields)
    while let document = try await documents.next() { try table.add(document) }
    try output.writeLine(table.isEmpty ? "No documents match." : table.text)
  }

  private static func writeLines(of documents: inout RemoteStore.Find.AsyncIterator) async throws {
    var output = Output()
    while let document = try await documents.next() {
      output.bytes += try document.json().withoutLineBreaks
      output.bytes.append(UInt8(ascii: "\n"))
      try output.flushIfLarge()
    }
    try output.flush()
  }

  private static func text(_ statistics: DocumentStatistics) -> String {
    let (seconds, attoseconds) = statistics.duration.components
    let nanoseconds = UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds) / 1_000_000_000
    let (examined, returned) = (statistics.examinedDocumentCount, statistics.returnedDocumentCount)
    return "examined \(examined), returned \(returned), \(HumanReadable.duration(nanoseconds: nanoseconds))"
  }

  // MARK: The query

  private func query() throws(CommandFailure) -> DocumentQuery {
    var query = DocumentQuery()
    if let selector {
      query.selector = try Self.reading("selector") { () throws(SelectorError) in try Selector(parsing: selector) }
    }
    if let sort {
      let fields = try Self.reading("sort") { () throws(SelectorError) in try Self.sortFields(sort) }
      if !count { query.sort = fields }
    }
    if let fields {
      let paths = try Self.reading("fields") { () throws(SelectorError) in try Self.paths(fields) }
      if !count { query.fields = paths }
    }
    query.skip = Int(skip)
    // Counting needs no documents.
    query.limit = count ? 0 : limit.flatMap { $0 == 0 ? nil : Int($0) }
    query.bookmark = bookmark
    return query
  }

  /// Reads a part of the query.
  /// - Parameter name: What is read, for the message.
  private static func reading<Part>(
    _ name: String, _ read: () throws(SelectorError) -> Part
  ) throws(CommandFailure) -> Part {
    do throws(SelectorError) { return try read() } catch {
      let place = error.code == .badBookmark ? "bookmark" : "\(name) at \(error.path)"
      throw CommandFailure(.usage, "bad \(place): \(error.reason); see 'larder find --help'")
    }
  }

  private static func sortFields(_ text: String) throws(SelectorError) -> [SortField] {
    if let json = try json(text, orThrow: .badSort) { return try SortField.fields(json) }
    return try SortField.fields(
      .array(names(text).map { $0.hasPrefix("-") ? [String($0.dropFirst()): "desc"] : .string($0) }))
  }

  private static func paths(_ text: String) throws(SelectorError) -> [FieldPath] {
    if let json = try json(text, orThrow: .badFields) { return try FieldPath.fields(json) }
    return try FieldPath.fields(.array(names(text).map { .string($0) }))
  }

  private static func names(_ text: String) -> [String] {
    text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  /// Returns nil for text that can't be an array or object, but names with commas between them.
  private static func json(_ text: String, orThrow code: SelectorError.Code) throws(SelectorError) -> JSONValue? {
    guard text.hasPrefix("[") || text.hasPrefix("{") else { return nil }
    do throws(JSONError) { return try JSONValue(parsing: text) } catch {
      throw SelectorError(code, "\(error)")
    }
  }
}

/// A table of documents: one per line, with the fields that were asked for, or as much of the document as fits.
private struct DocumentTable {
  private static let id = FieldPath(names: ["_id"])

  private let columns: [FieldPath]
  private var table: Table
  private(set) var isEmpty = true

  init(_ fields: [FieldPath]) {
    columns = fields.filter { $0 != Self.id }
    table = Table(header: ["_id"] + (fields.isEmpty ? ["document"] : columns.map(\.description)))
  }

  mutating func add(_ document: Document) throws {
    isEmpty = false
    let id = document.id ?? ""
    guard document.isProjection else {
      return table.add(id, String(decoding: document.text.withoutLineBreaks, as: UTF8.self))
    }
    let value = try document.value()
    table.add([id] + columns.map { Self.text(of: $0, in: value) })
  }

  /// Returns nothing for a field that is missing.
  private static func text(of path: FieldPath, in document: JSONValue) -> String {
    let value = path.names.reduce(document as JSONValue?) { $0?[$1] }
    return value?.string ?? value?.description ?? ""
  }

  var text: String { table.text }
}

extension [UInt8] {
  /// JSON text on one line. Line breaks are white space in JSON: strings have escapes in their place.
  fileprivate var withoutLineBreaks: [UInt8] {
    contains { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
      ? filter { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") } : self
  }
}
