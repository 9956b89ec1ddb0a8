import ArgumentParser
import Documents
import Larder

struct Update: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Changes the documents that match a selector, atomically.",
    discussion: """
      The SELECTOR is that of 'larder find'; {} is for all documents. --set takes an update in one of two forms. A \
      merge patch is an object whose members replace those of the document, with null to remove a member: \
      {"age":42,"pet":{"name":null}}. An object of operators changes fields by their paths: \
      {"$set":{"pet.species":"cat"},"$unset":["nickname"],"$inc":{"visits":1},"$push":{"tags":"new"}}.

      Changes up to 65,536 documents in one step: all of them or, if one can't be changed, none. Prints the number of \
      changed documents. A document that the update leaves as it was is not counted and keeps its revision.

      Example: larder update people '{"age":{"$gt":17}}' --set '{"adult":true}' --dry-run
      Example: larder update people '{"_id":"mike12"}' --set '{"$inc":{"age":1}}'
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "Which documents to change, as JSON.")
  private var selector: String

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The update: a merge patch, or an object of operators.", valueName: "update"))
  private var set: String

  @Flag(help: "Only print the number of documents that would change.")
  private var dryRun = false

  func run() async throws {
    let arguments = DocumentArguments(for: "update")
    let (selector, update) = (try arguments.selector(selector), try arguments.update(set))
    let changes = try await connection.client().store(store.name).update(where: selector, update, dryRun: dryRun)
    var output = Output()
    try output.writeLine(changes.text(verb: dryRun ? "would change" : "changed"))
  }
}

extension DocumentChanges {
  /// The number of changed documents; on a terminal, a sentence.
  func text(verb: String) -> String {
    guard Output.showsTables else { return String(changed) }
    let count = HumanReadable.number(Int(clamping: changed))
    guard matched != changed else { return "\(verb) \(count) \(changed == 1 ? "document" : "documents")" }
    return "\(verb) \(count) of \(HumanReadable.number(Int(clamping: matched))) matching documents"
  }
}
