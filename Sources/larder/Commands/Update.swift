import ArgumentParser
import Documents
import Larder

struct Update: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Changes the documents that match a selector, atomically.",
    discussion: """
      The SELECTOR and --where are those of 'larder find', and one of them is needed; {} is for all documents. --set takes an update in one of two forms. A \
      merge patch is an object whose members replace those of the document, with null to remove a member: \
      {"age":42,"pet":{"name":null}}. An object of operators changes fields by their paths: \
      {"$set":{"pet.species":"cat"},"$unset":["nickname"],"$inc":{"visits":1},"$push":{"tags":"new"}}.

      Changes up to 65,536 documents in one step: all of them or, if one can't be changed, none. More documents are \
      changed in batches in the order of their _id, each of them in one step. If that is interrupted, the batches before \
      stay, and larder prints how to continue with --after. Prints the number of changed documents. A document that the \
      update leaves as it was is not counted and keeps its revision. If the condition matches all documents because it \
      negates a condition on a field that none has, or compares two constants, larder warns, and asks on a terminal \
      unless --yes is given.

      Example: larder update people '{"age":{"$gt":17}}' --set '{"adult":true}' --dry-run
      Example: larder update people --where "name = 'mike' AND age < 18" --set '{"adult":false}'
      Example: larder update people '{"_id":"mike12"}' --set '{"$inc":{"age":1}}'
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "Which documents to change, as JSON.")
  private var selector: String?

  @Option(
    name: .customLong("where"), parsing: .unconditional,
    help: ArgumentHelp(
      "A predicate or a selector that the documents to change must match, too, as in 'larder find'.",
      valueName: "predicate")
  )
  private var condition: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The update: a merge patch, or an object of operators.", valueName: "update"))
  private var set: String

  @OptionGroup private var batches: BatchOptions
  @OptionGroup private var time: FindTimeOption

  @Flag(help: "Change documents without asking for a confirmation.")
  private var yes = false

  @Flag(help: "Only print the number of documents that would change.")
  private var dryRun = false

  func validate() throws {
    guard selector != nil || condition != nil else {
      throw ValidationError("Missing expected argument '<selector>', or --where")
    }
  }

  func run() async throws {
    let arguments = DocumentArguments(for: "update")
    let selector = try arguments.selector(selector, where: condition) ?? .all
    let update = try arguments.update(set)
    let store = time.apply(to: try connection.client().store(store.name))
    if !yes {
      try await QueryAdvice(store, named: self.store.name).confirm(selector, isDryRun: dryRun, verb: "Change")
    }
    let changes = try await batches.run(selector, of: store, verb: dryRun ? "would change" : "changed") {
      (isWhole, after, onBatch) throws(LarderError) in
      if isWhole { return ChangedBatch(try await store.update(where: selector, update, dryRun: dryRun)) }
      return try await store.updateInBatches(where: selector, update, after: after, dryRun: dryRun, onBatch: onBatch)
    }
    var output = Output()
    try output.writeLine(changes.text(verb: dryRun ? "would change" : "changed"))
    await changes.warn(about: selector, in: store, named: self.store.name)
  }
}

extension ChangedBatch {
  /// Prints what is probably wrong with the selector if no document matches it.
  func warn(about selector: Selector, in store: RemoteStore, named name: String) async {
    let advice = QueryAdvice(store, named: name)
    for warning in await advice.warnings(selector, foundNothing: matched == 0) { LarderCommand.warn(warning) }
  }

  /// The number of changed documents; on a terminal, a sentence.
  func text(verb: String) -> String {
    guard Output.showsTables else { return String(changed) }
    let count = HumanReadable.number(Int(clamping: changed))
    guard matched != changed else { return "\(verb) \(count) \(changed == 1 ? "document" : "documents")" }
    return "\(verb) \(count) of \(HumanReadable.number(Int(clamping: matched))) matching documents"
  }
}
