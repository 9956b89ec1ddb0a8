import Documents
import Storage
import Wire

/// A find: keeps the handles of the documents on the page, or counts.
final class FindTask: DocumentTask {
  let query: DocumentQuery
  private let request: FindRequest
  private let projection: EntryProjection?
  /// nil before `begin`.
  private var finder: EntryFinder?
  /// Whether the documents come in the order of the query.
  private var isOrdered = false
  /// The number of documents that match, if they need not be examined.
  private var exactCount: Int?
  /// The number of documents that were skipped without being examined.
  private var skippedCount = 0

  init(_ request: FindRequest, _ body: [UInt8]) throws(CommandFailure) {
    self.request = request
    let bytes = body.span
    do throws(SelectorError) {
      let query = try DocumentQuery(
        selector: bytes.extracting(request.selector), sort: bytes.extracting(request.sort),
        fields: bytes.extracting(request.fields), bookmark: bytes.extracting(request.bookmark))
      self.query = Self.query(query, request)
      projection = query.fields.isEmpty ? nil : EntryProjection(query.fields)
    } catch { throw CommandFailure(error) }
  }

  private static func query(_ query: DocumentQuery, _ request: FindRequest) -> DocumentQuery {
    // Counting needs neither an order nor documents.
    if request.isCountOnly { return DocumentQuery(query.selector, limit: 0) }
    var query = query
    query.skip = Int(clamping: request.skip)
    query.limit = request.limit.map { Int($0) }
    return query
  }

  var ignoresOrder: Bool { request.isCountOnly }
  var isFinished: Bool { finder?.isFinished ?? false }
  var keptByteCount: Int { finder?.keptByteCount ?? 0 }

  var neededCount: Int? {
    guard !request.isCountOnly, let limit = query.limit else { return nil }
    let (sum, isTooLarge) = limit.addingReportingOverflow(query.bookmark == nil ? query.skip - skippedCount : 0)
    return isTooLarge || sum == .max ? nil : sum + 1
  }

  func begin(_ plan: FindPlan, _ search: inout DocumentSearch) throws(SelectorError) {
    var query = query
    if plan.isExact, let count = search.count {
      if request.isCountOnly {
        exactCount = count
        search.dropFirst(count)
      } else if plan.isOrdered, query.bookmark == nil {
        skippedCount = min(query.skip, count)
        search.dropFirst(skippedCount)
        query.skip -= skippedCount
      }
    }
    isOrdered = plan.isOrdered && !request.isCountOnly
    finder = try EntryFinder(
      query, isOrdered: isOrdered, isExact: plan.isExact && query.bookmark == nil,
      isCounting: request.isCountOnly)
  }

  var looksAtValues: Bool { finder?.looksAtValues ?? true }

  func examine(
    _ entries: Span<StoredEntry>, maxKeptByteCount: Int, _ budget: inout WorkBudget
  ) throws(ExaminationFailure) -> Int {
    // Taken out of this object, whose properties are slower.
    guard var finder = finder.take() else { preconditionFailure("the find has begun") }
    let count: Int
    do throws(ExhaustedBudgetError) {
      count = try finder.examine(entries, maxKeptByteCount: maxKeptByteCount, &budget)
    } catch { throw .exhaustedBudget }
    self.finder = consume finder
    return count
  }

  // MARK: Parts

  /// The number of documents to examine before it is known how many match.
  private static let sampleCount = 16_384
  /// Of how many documents one may match, at most, so that it doesn't matter that it is examined twice.
  private static let minDocumentsPerMatch = 8

  func isDivisible(_ count: Int, after examinedCount: Int) -> Bool {
    guard isOrdered else { return true }
    guard examinedCount >= Self.sampleCount, let matchCount = finder?.matchCount,
      matchCount * Self.minDocumentsPerMatch <= examinedCount
    else { return false }
    guard let neededCount else { return true }
    return Double(matchCount) * Double(count) < Double(neededCount - matchCount) * Double(examinedCount)
  }

  /// If the documents come in the order of the query, a part keeps those that match, and the find examines these again:
  /// only then is it known which of them are on the page.
  func beginPart(_ plan: FindPlan, _ search: inout DocumentSearch) throws(SelectorError) {
    guard plan.isOrdered, !request.isCountOnly else { return try begin(plan, &search) }
    isOrdered = true
    finder = try EntryFinder(DocumentQuery(query.selector), isOrdered: true, isExact: plan.isExact)
  }

  func join(_ part: any DocumentTask, _ budget: inout WorkBudget) throws(ExaminationFailure) -> [UInt32] {
    guard let part = part as? FindTask, let other = part.finder.take() else { preconditionFailure("a find has begun") }
    do throws(ExhaustedBudgetError) {
      guard !isOrdered else { return try other.page(&budget).handles }
      try finder?.join(other, &budget)
      return []
    } catch { throw .exhaustedBudget }
  }

  // MARK: End

  func end(_ job: DocumentJob, _ budget: inout WorkBudget) throws(ExaminationFailure) -> TaskEnd {
    guard let finder = finder.take() else { preconditionFailure("the find has begun") }
    let matchCount = exactCount ?? finder.matchCount
    let page: (handles: [UInt32], bookmark: String?)
    do throws(ExhaustedBudgetError) { page = try finder.page(&budget) } catch { throw .exhaustedBudget }
    let text = request.isExplained ? job.explanation : request.isCountOnly ? "" : page.bookmark ?? ""
    let result = FindResult(
      revision: job.snapshotRevision, examinedDocuments: UInt64(job.examinedDocuments),
      examinedKeys: UInt64(job.examinedKeys),
      found: UInt64(request.isCountOnly ? matchCount : page.handles.count), nanoseconds: job.elapsedTime,
      text: text)
    guard result.size <= job.limits.maxBodyBytes else {
      throw .failed(
        job.stop(
          request.isExplained
            ? "has an explanation larger than a frame (limits.frame-bytes)"
            : "has a bookmark larger than a frame (limits.frame-bytes); sort by smaller values"))
    }
    let handles = request.isCountOnly || request.isExplained ? [] : page.handles
    return .result(.found(FoundDocuments(handles: handles, projection: projection, result: result)))
  }
}
