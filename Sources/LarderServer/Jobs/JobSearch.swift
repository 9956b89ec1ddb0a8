import Documents
import Storage

/// Where a job looks for documents: along a plan, then perhaps along another one, and at last among what others have
/// written meanwhile.
struct JobSearch {
  /// The documents that are looked at now.
  private(set) var documents: DocumentSearch
  /// The plan that is followed; nil before there is one, and once others' writes are looked at.
  private var plan: FindPlan?
  /// What is done instead if too many documents must be looked at.
  private var fallback: (PlanChoice.Fallback, [IndexView])?
  /// A snapshot that is newer than the request, and that the job must end.
  private var newerSnapshot: Snapshot?
  /// The number of keys of indexes that earlier searches have looked at.
  private var previousKeys = 0
  /// Whether the plan is to look at all entries.
  private(set) var isScan = false
  /// Why the plan was chosen.
  private(set) var explanation: PlanExplanation?

  init(all snapshot: Snapshot) { documents = DocumentSearch(all: snapshot) }

  /// The number of keys of indexes that were looked at.
  var examinedKeys: Int { previousKeys + documents.examinedKeys }

  /// Follows a plan with a task.
  mutating func begin(
    _ choice: PlanChoice, _ task: any DocumentTask, _ indexes: [IndexView], _ ranks: inout RankReader
  ) throws(CommandFailure) {
    fallback = choice.fallback.map { ($0, indexes) }
    try begin(choice.plan, choice.explanation, task, indexes, &ranks)
  }

  private mutating func begin(
    _ plan: FindPlan, _ explanation: PlanExplanation, _ task: any DocumentTask, _ indexes: [IndexView],
    _ ranks: inout RankReader
  ) throws(CommandFailure) {
    do throws(StorageError) { documents = try DocumentSearch(plan, indexes, &ranks) } catch {
      throw CommandFailure(error)
    }
    do throws(SelectorError) { try task.begin(plan, &documents) } catch { throw CommandFailure(error) }
    self.plan = plan
    self.explanation = explanation
    if case .ids(let ranges) = plan.source, ranges == [.all] || task.query.bookmark != nil {
      // A scan, or what it has left behind the last page.
      isScan = true
    }
  }

  /// Has a task begin to examine the documents, which are a part of those of the plan.
  mutating func beginPart(_ task: any DocumentTask) throws(CommandFailure) {
    guard let plan else { preconditionFailure("there is a plan") }
    do throws(SelectorError) { try task.beginPart(plan, &documents) } catch { throw CommandFailure(error) }
  }

  /// Whether the fallback is better, because that many documents have been examined and others are left.
  func mustFallBack(afterExamining count: Int) -> Bool {
    guard let (other, _) = fallback else { return false }
    return count >= other.examinedCount && !documents.isAtEnd
  }

  /// Starts over along the fallback, with a new task.
  mutating func fallBack(
    _ task: any DocumentTask, of store: Store, in snapshot: Snapshot
  ) throws(CommandFailure) {
    guard let (other, indexes) = fallback.take() else { preconditionFailure("there is a fallback") }
    var ranks = RankReader(store, indexes, in: snapshot, maxCount: .max)
    previousKeys += documents.examinedKeys
    try begin(other.plan, other.explanation, task, indexes, &ranks)
  }

  /// Goes on with other documents, of a newer snapshot.
  mutating func goOn(with handles: [UInt32], in snapshot: Snapshot, of store: Store) {
    let previous = newerSnapshot
    plan = nil
    newerSnapshot = snapshot
    previousKeys += documents.examinedKeys
    documents = DocumentSearch(handles, in: snapshot)
    if let previous { store.access { $0.end(previous) } }
  }

  /// The number of keys and handles that are left and can be divided; nil if they can't, or while it is not known.
  var divisibleCount: Int? { plan != nil && fallback == nil && !documents.visitsGroups ? documents.count : nil }

  /// Splits the remaining documents into consecutive searches, in the order of the plan.
  mutating func divide(into count: Int) -> [JobSearch] {
    documents.divide(into: count).map { part in
      var search = self
      search.documents = part
      search.previousKeys = 0
      return search
    }
  }

  /// Adds the keys that a part has looked at.
  mutating func addKeys(_ count: Int) { previousKeys += count }

  /// Goes on with documents of the same snapshot.
  mutating func goOn(with handles: [UInt32]) {
    previousKeys += documents.examinedKeys
    documents = DocumentSearch(handles, in: documents.snapshot)
  }

  /// Ends the snapshot that is newer than the request, if there is one.
  mutating func endNewerSnapshot(of store: Store) {
    if let newerSnapshot = newerSnapshot.take() { store.access { $0.end(newerSnapshot) } }
  }

  /// Finds the next documents that several indexes have, if the plan needs that.
  /// - Returns: Whether that takes further calls, before any document is visited.
  mutating func gather(from store: Store, now: UInt64) throws(StorageError) -> Bool {
    try documents.gather(from: store, now: now)
  }

  /// Visits the next documents.
  mutating func visitNext(
    _ maxCount: Int, in map: inout EntryMap, now: UInt64, _ visit: (EntryHead, EntryView) -> DocumentSearch.Visit
  ) throws(StorageError) {
    try documents.visitNext(maxCount, in: &map, now: now, visit)
  }
}
