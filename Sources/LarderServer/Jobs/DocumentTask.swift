import Documents
import Storage
import Wire

/// What a job does with the documents that it looks at: what differs between a find, an aggregation and a change.
///
/// Owned by a `DocumentJob`, and used by one thread at a time.
protocol DocumentTask: AnyObject {
  /// Which documents it is about and, of a find, their order and how many are needed.
  var query: DocumentQuery { get }
  /// Whether all documents are needed, in any order.
  var ignoresOrder: Bool { get }
  /// The fields with the same values in all documents that one of them may represent; nil if each document is needed.
  var grouping: [FieldPath]? { get }
  /// Whether further documents can't change the result.
  var isFinished: Bool { get }
  /// The size of what is kept, in bytes.
  var keptByteCount: Int { get }
  /// How far it has come, for the error of a job that has reached a limit; nil to say what the job has examined.
  var progress: String? { get }
  /// The number of documents that are needed if they come in the order of the query; nil for all.
  var neededCount: Int? { get }

  /// Begins to examine documents.
  /// - Parameter search: Where the documents are. What needs no examination is left out of it.
  func begin(_ plan: FindPlan, _ search: inout DocumentSearch) throws(SelectorError)

  /// Returns whether the documents that are left can be examined by several tasks, and are probably all needed.
  /// - Parameters:
  ///   - count: The number of documents that are left.
  ///   - examinedCount: The number of those that were examined.
  func isDivisible(_ count: Int, after examinedCount: Int) -> Bool

  /// Begins to examine a part of the documents.
  func beginPart(_ plan: FindPlan, _ search: inout DocumentSearch) throws(SelectorError)

  /// Adds what a part has found, after those that come before it.
  /// - Returns: The handles of documents that this task has yet to examine itself.
  /// - Throws: If it can't, or the budget is exhausted. The task is of no further use then.
  func join(_ part: any DocumentTask, _ budget: inout WorkBudget) throws(ExaminationFailure) -> [UInt32]

  /// Whether the values of entries matter.
  var looksAtValues: Bool { get }

  /// Examines entries, which may be no documents, until the task is finished or keeps more than that many bytes.
  /// - Returns: The number of entries that were examined; 0 only if there are none.
  /// - Throws: If it can't, or the budget is exhausted. The task is of no further use then.
  func examine(
    _ entries: Span<StoredEntry>, maxKeptByteCount: Int, _ budget: inout WorkBudget
  ) throws(ExaminationFailure) -> Int

  /// Makes the result, after the documents have been examined.
  /// - Throws: If there is none, or the budget is exhausted. The task is of no further use then.
  func end(_ job: DocumentJob, _ budget: inout WorkBudget) throws(ExaminationFailure) -> TaskEnd
}

extension DocumentTask {
  var ignoresOrder: Bool { true }
  var grouping: [FieldPath]? { nil }
  var isFinished: Bool { false }
  var progress: String? { nil }
  var neededCount: Int? { nil }
  var looksAtValues: Bool { true }
  func begin(_ plan: FindPlan, _ search: inout DocumentSearch) {}
  func isDivisible(_ count: Int, after examinedCount: Int) -> Bool { false }

  func beginPart(_ plan: FindPlan, _ search: inout DocumentSearch) throws(SelectorError) { try begin(plan, &search) }

  func join(_ part: any DocumentTask, _ budget: inout WorkBudget) -> [UInt32] {
    preconditionFailure("it isn't divisible")
  }
}

/// What is known of an entry apart from its key and value.
struct EntryHead {
  let handle: UInt32
  let revision: UInt64
  /// When the entry expires, in milliseconds of the store's clock; 0 for never.
  let expiry: UInt64
  /// The number of documents that it stands for, of a plan for groups.
  let documentCount: Int

  init(_ handle: UInt32, _ entry: EntryView, documentCount: Int = 1) {
    self.handle = handle
    self.documentCount = documentCount
    revision = entry.revision
    expiry = entry.expiry
  }
}

/// What a task has come to.
enum TaskEnd {
  case result(JobResult)
  /// The documents at these handles of a newer snapshot must be examined, too. 0 stands for no document.
  case needsDocuments([UInt32], Snapshot)
  /// There is more to do, in this turn or the next one.
  case unfinished
  /// The store has no room for a commit at the moment.
  case needsSpace
  /// The changes must be made by a large commit, after which the task's end is called again.
  case needsCommit(any CommittingTask)
  /// The job was canceled just now.
  case canceled
}

/// What a job has come to, which is sent to its client.
enum JobResult: Sendable {
  case found(FoundDocuments)
  case rows(AggregatedRows)
  /// - Parameter shownRevision: The newest commit that the reply reveals.
  case changed(MatchingChanges, shownRevision: UInt64)
  /// - Parameters:
  ///   - revision: The revision of what was written; 0 if that is nothing.
  ///   - shownRevision: The newest commit that the reply reveals.
  case applied(revision: UInt64, shownRevision: UInt64)

  /// The memory, in bytes, that it takes until it has been sent.
  var byteCount: Int {
    switch self {
    case .found(let found): found.handles.count * MemoryLayout<UInt32>.stride
    case .rows(let rows): rows.rows.byteCount
    case .changed, .applied: 0
    }
  }

  /// What was looked at, for the metrics; nil if nothing was searched for.
  var examined: (documents: UInt64, keys: UInt64)? {
    switch self {
    case .found(let found): (found.result.examinedDocuments, found.result.examinedKeys)
    case .rows(let rows): (rows.result.examinedDocuments, rows.result.examinedKeys)
    case .changed(let changes, _): (changes.examinedDocuments, changes.examinedKeys)
    case .applied: nil
    }
  }
}

/// What a find has found, in the order of its query.
struct FoundDocuments: Sendable {
  /// The handles of the documents in the find's snapshot.
  let handles: [UInt32]
  /// The fields to return; nil for whole documents.
  let projection: EntryProjection?
  /// What is sent after the documents.
  let result: FindResult
}

/// The groups of an aggregation.
struct AggregatedRows: Sendable {
  /// Each group as JSON.
  let rows: PackedRows
  /// What is sent after the rows.
  let result: FindResult
}

/// Texts that follow each other in one piece of memory, so that a worker frees any number of them at once.
struct PackedRows: Sendable {
  private var bytes: [UInt8] = []
  private var ends: [Int] = []

  var count: Int { ends.count }

  /// The memory of all rows, in bytes.
  var byteCount: Int { bytes.count + ends.count * MemoryLayout<Int>.stride }

  subscript(row: Int) -> ArraySlice<UInt8> { bytes[(row == 0 ? 0 : ends[row - 1])..<ends[row]] }

  mutating func append(_ row: [UInt8]) {
    bytes += row
    ends.append(bytes.count)
  }
}
