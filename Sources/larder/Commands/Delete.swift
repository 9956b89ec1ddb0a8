import ArgumentParser
import Larder

struct Delete: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Deletes entries.",
    discussion: """
      Deletes the entries of the KEYS atomically, and ignores keys without an entry. With --where instead of KEYS, \
      deletes the documents that match a selector or predicate: up to 65,536 of them atomically, more of them in atomic \
      batches in the order of their _id. --all deletes all entries atomically. With --prefix, --from, --to or --match, \
      and with --keys-from, larder deletes in steps of up to 10,000 \
      keys: other clients can see the state between two steps.

      Prints the number of deleted entries. --all, ranges of keys, and conditions without a condition, such as {}, need \
      a confirmation: on a terminal, larder asks for it; elsewhere, give --yes. If --where matches all documents because \
      it negates a condition on a field that none has, or compares two constants, larder warns, and asks on a terminal.

      Example: larder delete items apple pear
      Example: larder delete items --prefix user: --yes
      Example: larder delete people --where '{"age":{"$lt":12}}' --dry-run
      Example: larder delete people --where "age < 12 AND pet.species = 'cat'"
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument
  @OptionGroup private var keys: KeysArguments

  @Option(
    name: .customLong("where"), parsing: .unconditional,
    help: ArgumentHelp(
      "Delete the documents that match this selector or predicate, as in 'larder find'.", valueName: "selector"))
  private var condition: String?

  @OptionGroup private var batches: BatchOptions
  @OptionGroup private var time: FindTimeOption
  @OptionGroup private var range: KeyRangeOptions

  @Flag(help: "Delete all entries.")
  private var all = false

  @Flag(help: "Delete without asking for a confirmation.")
  private var yes = false

  @Flag(help: "Only print the number of entries that would be deleted; not for KEYS.")
  private var dryRun = false

  func validate() throws {
    let choices = [
      (!keys.isEmpty, "keys"), (condition != nil, "--where"), (!range.isEverything, "a range of keys"), (all, "--all"),
    ].filter(\.0).map(\.1)
    guard choices.count < 2 else { throw ValidationError("\(choices[0]) and \(choices[1]) can't be combined") }
    if choices.isEmpty { try keys.requireKeys(or: ", --where, --prefix, --from, --to, --match or --all") }
    if condition == nil { try batches.requireNone() }
    guard keys.isEmpty || !dryRun else { throw ValidationError("--dry-run can't be combined with keys") }
  }

  func run() async throws {
    let selector = try condition.map(DocumentArguments(for: "delete").condition)
    let store = try connection.client().store(store.name)
    var output = Output()
    if let selector {
      let store = time.apply(to: store)
      if !yes {
        try await QueryAdvice(store, named: self.store.name).confirm(
          selector, isDryRun: dryRun, needsConfirmation: selector.tree.isEverything, verb: "Delete")
      }
      let changes = try await batches.run(selector, of: store, verb: dryRun ? "would delete" : "deleted") {
        (isWhole, after, onBatch) throws(LarderError) in
        if isWhole { return ChangedBatch(try await store.delete(where: selector, dryRun: dryRun)) }
        return try await store.deleteInBatches(where: selector, after: after, dryRun: dryRun, onBatch: onBatch)
      }
      try output.writeLine(changes.text(verb: dryRun ? "would delete" : "deleted"))
      return await changes.warn(about: selector, in: store, named: self.store.name)
    }
    if dryRun { return try output.writeLine(String(try await range.count(in: store))) }
    try output.writeLine(String(try await delete(from: store)))
  }

  private func delete(from store: RemoteStore) async throws -> UInt64 {
    guard keys.isEmpty else {
      var count: UInt64 = 0
      for keys in try await keys.requests() { count += try await store.deleteMany(keys) }
      return count
    }
    if !yes {
      let count = try await range.count(in: store)
      let entries = HumanReadable.amount(Int(clamping: count))
      try await Confirmation.require("Delete \(entries) of '\(self.store.name)'?")
    }
    return all ? try await store.deleteAll() : try await deleteRange(of: store)
  }

  private func deleteRange(of store: RemoteStore) async throws -> UInt64 {
    var count: UInt64 = 0
    var keys: [String] = []
    try await range.forEachEntry(of: store, keysOnly: true) { entry in
      keys.append(entry.key)
      if keys.count == KeysArguments.maxRequestCount {
        count += try await store.deleteMany(keys)
        keys.removeAll(keepingCapacity: true)
      }
      return true
    }
    return keys.isEmpty ? count : count + (try await store.deleteMany(keys))
  }
}
