import Documents
import Platform
import Storage

/// Why documents are examined no further.
enum ExaminationFailure: Error {
  case failed(CommandFailure)
  case tooManyDocuments, tooMuchMemory, overdue
  /// The budget for the work was exhausted.
  case exhaustedBudget
}

/// Has a task examine the documents that a search finds, a batch at a time. Owned by a `DocumentJob` or a `JobPart`.
struct DocumentExaminer: ~Copyable {
  /// Where the documents are.
  var search: JobSearch
  /// The number of documents that were looked at.
  private(set) var examinedDocuments = 0

  private let store: Store
  private let limits: ServerLimits
  /// The time that expiries are compared with, in milliseconds of the store's clock.
  private let now: UInt64
  /// The number of entries that are examined at a time, so that a turn ends in time whatever an entry takes.
  private var batchCount = 16
  /// A batch that has been gathered, while its values are read from a disk.
  private var waitingBatch: DocumentBatch?
  private var core = CoreYield()

  init(_ search: JobSearch, of store: Store, now: UInt64, limits: ServerLimits) {
    self.search = search
    self.store = store
    self.now = now
    self.limits = limits
  }

  /// Whether nothing is left to look at.
  var isAtEnd: Bool { waitingBatch == nil && search.documents.isAtEnd }

  /// Begins again with another search.
  mutating func startOver(_ search: JobSearch) {
    self.search = search
    examinedDocuments = 0
  }

  /// Adds what another examiner has looked at.
  mutating func addWork(of other: borrowing DocumentExaminer) {
    examinedDocuments += other.examinedDocuments
    search.addKeys(other.search.examinedKeys)
  }

  /// Ends what was begun in the store.
  mutating func end() {
    if var waiting = waitingBatch.take() { waiting.end(in: store) }
    search.endNewerSnapshot(of: store)
  }

  /// Examines the next batch.
  /// - Parameters:
  ///   - batch: What gathers the entries. The caller ends it.
  ///   - maxKeptByteCount: The memory that the task and the search may keep.
  /// - Returns: The values that must be read from a disk before the next call; nil if there are none.
  mutating func examineNext(
    _ batch: inout DocumentBatch, _ task: any DocumentTask, maxKeptByteCount: Int, _ budget: inout WorkBudget
  ) throws(ExaminationFailure) -> [SeparatedValue]? {
    let start = monotonicNanoseconds()
    if let values = try gather(&batch) { return values }
    let maxKeptByteCount = maxKeptByteCount - search.documents.keptByteCount
    if maxKeptByteCount >= 0 {
      if task.looksAtValues { batch.checkObjects(&budget) }
      var count = 0
      while count < batch.count, !task.isFinished, task.keptByteCount <= maxKeptByteCount {
        do throws(ExaminationFailure) {
          count += try batch.withEntries(from: count) { entries throws(ExaminationFailure) in
            try task.examine(entries, maxKeptByteCount: maxKeptByteCount, &budget)
          }
        } catch { throw cause(of: error) }
      }
      examinedDocuments += count
    }
    guard task.keptByteCount <= maxKeptByteCount else { throw .tooMuchMemory }
    // A worker that waits for this core comes first.
    core.yield()
    adaptBatch(to: monotonicNanoseconds() - start)
    return nil
  }

  /// Returns why a job's budget was exhausted, if that is the failure, and otherwise the failure.
  func cause(of failure: ExaminationFailure) -> ExaminationFailure {
    guard case .exhaustedBudget = failure else { return failure }
    return store.mustEndReading ? .failed(CommandFailure(StorageError.snapshotEnded)) : .overdue
  }

  /// Gathers the next entries, or continues with those that have waited for a disk.
  /// - Returns: the values that must be read from a disk before the entries are examined; nil if there are none.
  private mutating func gather(_ batch: inout DocumentBatch) throws(ExaminationFailure) -> [SeparatedValue]? {
    if let waiting = waitingBatch.take() {
      batch = waiting
      return nil
    }
    let maxCount = min(batchCount, limits.findDocuments - examinedDocuments)
    guard maxCount > 0 else { throw .tooManyDocuments }
    do throws(StorageError) {
      if store.mustEndReading { throw .snapshotEnded }
      if try search.gather(from: store, now: now) {
        batch.end(in: store)
      } else {
        let now = now
        try store.accessInTurn { map throws(StorageError) in
          try batch.begin(search.documents.snapshot, in: &map)
          try search.visitNext(maxCount, in: &map, now: now) { head, entry in
            batch.append(entry, head)
            return batch.isFull ? .stop : .next
          }
        }
      }
    } catch { throw .failed(CommandFailure(error)) }
    let values = batch.uncachedValues
    if values.isEmpty { return nil }
    var waiting = DocumentBatch()
    swap(&waiting, &batch)
    waitingBatch = consume waiting
    return values
  }

  /// Makes the next batch smaller or larger so that it takes a fraction of a turn.
  private mutating func adaptBatch(to nanoseconds: UInt64) {
    if nanoseconds > JobClock.turnTime / 2 {
      batchCount = max(1, batchCount / 2)
    } else if nanoseconds < JobClock.turnTime / 8 {
      batchCount = min(DocumentBatch.maxCount, batchCount * 2)
    }
  }

  // MARK: A few documents

  /// The maximum size of the documents that are examined in place, in bytes, and their maximum number.
  private static let maxBriefByteCount = 64 << 10
  static let maxBriefCount = 256

  /// Examines a few entries under the store's lock, until they are too many or too large.
  mutating func examineInPlace(_ task: any DocumentTask, _ budget: inout WorkBudget) throws(ExaminationFailure) {
    var (failure, byteCount, isRefused) = (ExaminationFailure?.none, 0, false)
    let (now, maxCount) = (now, min(Self.maxBriefCount, limits.findDocuments))
    // Of what is no document, there may be more.
    var visits = 0
    var checker = IJSON()
    var entries: [StoredEntry] = []
    var objects: [UInt32] = []
    let looksAtValues = task.looksAtValues
    do throws(StorageError) {
      try store.accessInTurn { map throws(StorageError) in
        while !search.documents.isAtEnd, !task.isFinished, !isRefused, failure == nil, examinedDocuments < maxCount,
          visits < Self.maxBriefCount, !budget.isExhausted
        {
          visits += 1
          entries.removeAll(keepingCapacity: true)
          try search.visitNext(
            min(maxCount - examinedDocuments, task.neededCount ?? .max), in: &map, now: now
          ) { head, view in
            guard view.kind == .single else { return .next }
            guard let value = unsafe view.value, byteCount + value.count <= Self.maxBriefByteCount else {
              isRefused = true
              return .refuse
            }
            byteCount += value.count
            var entry = unsafe StoredEntry(view, head, value: value)
            if looksAtValues, !entry.isTrusted {
              entry.isTrusted = entry.withValue { checker.isObject($0, &budget) }
              if entry.isTrusted { objects.append(head.handle) }
            }
            entries.append(entry)
            return budget.isExhausted ? .stop : .next
          }
          var count = 0
          do throws(ExaminationFailure) {
            while count < entries.count, !task.isFinished {
              count += try task.examine(entries.span.extracting(count...), maxKeptByteCount: .max, &budget)
            }
          } catch { failure = error }
          examinedDocuments += count
        }
        for handle in objects { map.noteObject(at: handle) }
      }
    } catch { throw .failed(CommandFailure(error)) }
    if let failure { throw failure }
    do throws(ExhaustedBudgetError) { try budget.check() } catch { throw .exhaustedBudget }
  }
}
