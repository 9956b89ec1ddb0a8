import ArgumentParser
import Documents
import Larder
import Platform

/// How an update or deletion of documents goes on in batches if there are too many for one step.
struct BatchOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Begin after the document with this _id, to continue in batches where an earlier command has stopped.",
      valueName: "id"))
  private var after: String?

  /// - Throws: `ValidationError` if the option is given.
  func requireNone() throws {
    guard after == nil else { throw ValidationError("--after is for --where only") }
  }

  /// Changes documents in one step or, if there are too many, in batches. Standard error says so, and how to continue if
  /// that fails.
  /// - Parameters:
  ///   - verb: What is done, such as "changed".
  ///   - change: Changes all documents in one step, or those after an `_id` in batches.
  func run(
    _ selector: Selector, of store: RemoteStore, verb: String,
    _ change: (_ isWhole: Bool, _ after: String?, _ onBatch: (ChangedBatch) -> Void) async throws(LarderError) ->
      ChangedBatch
  ) async throws -> ChangedBatch {
    if after == nil {
      do throws(LarderError) { return try await change(true, nil, { _ in }) } catch {
        guard error.kind == .queryStopped, try await store.count(selector) > Self.maxStepCount else { throw error }
        logLine("more than 65,536 documents match: continuing in batches, each of them in one step")
      }
    }
    var progress = Progress("documents", total: nil)
    var lastID = after
    do throws(LarderError) {
      let changes = try await change(false, after) { batch in
        if let id = batch.lastID { lastID = id }
        progress.show(Int(clamping: batch.matched), done: 0)
      }
      progress.clear()
      return changes
    } catch {
      progress.clear()
      if let lastID { logLine("\(verb) everything up to this document; continue with --after \(lastID.shellQuoted)") }
      throw error
    }
  }

  /// The maximum number of documents that the server changes in one step.
  private static let maxStepCount: UInt64 = 65_536
}

extension ChangedBatch {
  /// What one step has changed.
  init(_ changes: DocumentChanges) { self.init(matched: changes.matched, changed: changes.changed, lastID: nil) }
}

extension String {
  /// The text as one word of a shell's command line.
  fileprivate var shellQuoted: String {
    "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }
}
