import ArgumentParser
import Basics
import Documents
import Larder
import Platform

/// The family `larder index`.
struct IndexCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "index",
    abstract: "Creates, lists and deletes indexes of documents.",
    discussion: """
      An index keeps the documents of a store in the order of some of their fields, so that 'larder find', 'larder \
      update' and 'larder delete --where' need not examine the whole store. It never changes what they find. The keys \
      and the revisions of documents can be fields, too: _id and _rev. 'larder find --explain' shows which indexes \
      are used, and which one would help.
      """,
    subcommands: [IndexCreate.self, IndexList.self, IndexDelete.self])

  func run() throws {
    throw CommandFailure(.usage, "a command is missing; see 'larder index --help'")
  }
}

struct IndexCreate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Creates an index.",
    discussion: """
      A FIELD is a path, such as age or pet.species, with a leading - for descending order. A path leads into each \
      element of an array. Several fields make an index that helps to find documents by the first field, by the first \
      and the second, and so on, and to sort by them. Commas can separate fields, too: name,-age.

      With --where, the index has only the documents that match a selector or predicate, and is used only for queries \
      whose results all match it.

      Returns when the index is complete; on a terminal, larder shows the progress. While the index is built, the \
      store is in use as before. With --background, or if larder is interrupted, the server builds it in the \
      background. If the index exists, larder waits until it is complete; if the NAME is that of an index with \
      another definition, the exit status is 3.

      Example: larder index create people by-name name -age
      Example: larder index create people cats age --where '{"pet.species":"cat"}'
      Example: larder index create people adults name --where "age >= 18"
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "The name of the new index, 1 to 128 bytes of UTF-8.")
  private var name: String

  @Argument(
    help: ArgumentHelp(
      "The fields, in order; -FIELD is descending.", valueName: CommandLinePosition.fieldArgumentName))
  private var fields: [String]

  @Option(
    name: .customLong("where"), parsing: .unconditional,
    help: ArgumentHelp(
      "The selector or predicate of the documents that are in the index, as in 'larder find'. (default: all)",
      valueName: "selector"))
  private var condition: String?

  @Flag(help: "Return at once; 'larder index list' shows the progress.")
  private var background = false

  func run() async throws {
    let index = try definition()
    let store = try connection.client().store(store.name)
    _ = try await store.ensureIndex(index)
    if !background { try await wait(for: index.name, in: store) }
  }

  private func definition() throws(CommandFailure) -> DocumentIndex {
    let arguments = DocumentArguments(for: "index create")
    var order: [SortField] = []
    for field in fields { order += try arguments.sort(field) }
    let selector = try condition.map { (text) throws(CommandFailure) in try arguments.condition(text) }
    do throws(DocumentIndexError) { return try DocumentIndex(order, where: selector, name: name) } catch {
      throw arguments.failure("index at \(error.path)", error.reason)
    }
  }

  /// Waits until the index is complete, and shows the progress.
  private func wait(for name: String, in store: RemoteStore) async throws {
    // The progress is in thousandths.
    let progress = Lock(Progress("entries", total: 1_000))
    do {
      let status = try await store.waitForIndex(named: name) { status in
        progress.withLock { $0.show(nil, done: Int(status.progress * 1_000)) }
      }
      progress.withLock {
        $0.finish("indexed", Int(clamping: status.entries), bytes: Int(clamping: status.memoryBytes))
      }
    } catch {
      progress.withLock { $0.clear() }
      guard error.kind == .cancelled else { throw error }
      throw CommandFailure(
        .unreachable,
        "interrupted; the server continues to build the index: 'larder index list \(self.store.name)' shows the progress"
      )
    }
  }
}

struct IndexList: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Lists the indexes of a store.",
    discussion: """
      Prints a table on a terminal, otherwise one line of JSON for each index: {"name","fields","where","state",\
      "progress","reason","entries","documents","memoryBytes","overflowDocuments","arrayFields"}. The state is ready, \
      building, with "progress" from 0 to 1, or failed, with a "reason" if it is known. "where" is missing if all \
      documents are in the index. An overflow document has too many or too large keys; each find that uses the index \
      examines it.

      Example: larder index list people
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument
  @OptionGroup var outputOptions: OutputOptions

  func run() async throws {
    let indexes = try await connection.client().store(store.name).indexes()
    var output = Output()
    guard Output.showsRows else {
      for index in indexes {
        output.bytes += index.json.encoded()
        output.bytes.append(UInt8(ascii: "\n"))
        try output.flushIfLarge()
      }
      return try output.flush()
    }
    try output.write(
      Self.table(indexes),
      orIfEmpty: "There are no indexes; 'larder index create \(store.name) NAME FIELD' creates one.")
  }

  private static func table(_ indexes: [IndexStatus]) -> Table {
    let showsSelectors = indexes.contains { $0.index.selector != nil }
    var table = Table(
      header: ["INDEX", "FIELDS"] + (showsSelectors ? ["WHERE"] : []) + ["STATE", "ENTRIES", "DOCUMENTS", "MEMORY"])
    for status in indexes {
      let fields = status.index.fields.map(\.argument).joined(separator: " ")
      let selector = status.index.selector.map(\.description) ?? ""
      table.add(
        [status.index.name, fields] + (showsSelectors ? [selector] : [])
          + [
            state(status), HumanReadable.number(Int(clamping: status.entries)),
            HumanReadable.number(Int(clamping: status.documents)), HumanReadable.bytes(status.memoryBytes),
          ])
    }
    return table
  }

  private static func state(_ status: IndexStatus) -> String {
    switch status.state {
    case .ready: "ready"
    case .building: "building, \(Int(status.progress * 100))%"
    case .failed: status.failure.map { "failed: \($0)" } ?? "failed"
    }
  }
}

struct IndexDelete: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete",
    abstract: "Deletes an index.",
    discussion: """
      The documents remain. Deleting an index that is being built cancels the build. If there is no such index, the \
      exit status is 1.

      Example: larder index delete people by-name
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: ArgumentHelp("The name of the index.", valueName: "index"))
  private var name: String

  func run() async throws {
    let indexes = try connection.client().store(store.name)
    guard try await indexes.deleteIndex(named: name) else {
      let names = try await indexes.indexes().map(\.index.name)
      let suggestion = CommandFailure.question(SpellingSuggestion.nearest(to: name, of: names))
      throw CommandFailure(
        .notFound,
        "'\(store.name)' has no index '\(name)'; \(suggestion)'larder index list \(store.name)' lists its indexes")
    }
  }
}

extension IndexStatus {
  /// The index as a line of `larder index list`: its definition, and its state.
  fileprivate var json: JSONValue {
    var json = index.json
    json["state"] = .string(state.rawValue)
    if state == .building { json["progress"] = .double(progress) }
    if let failure { json["reason"] = .string(failure) }
    let numbers = [
      ("entries", entries), ("documents", documents), ("memoryBytes", memoryBytes),
      ("overflowDocuments", overflowDocuments),
    ]
    for (name, number) in numbers { json[name] = .integer(Int64(clamping: number)) }
    json["arrayFields"] = .array(arrayFields.map { .string($0.description) })
    return json
  }
}

extension SortField {
  /// The field as an argument of `larder index create`.
  var argument: String {
    let path = path.description
    return direction == .descending ? "-\(path)" : path.hasPrefix("-") ? "\\\(path)" : path
  }
}
