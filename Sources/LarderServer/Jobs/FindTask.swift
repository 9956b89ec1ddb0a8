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
  private(set) var isDivisible = false
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
    isDivisible = !plan.isOrdered || request.isCountOnly
    finder = try EntryFinder(
      query, isOrdered: plan.isOrdered && !request.isCountOnly, isExact: plan.isExact && query.bookmark == nil,
      isCounting: request.isCountOnly)
  }

  var looksAtValues: Bool { finder?.looksAtValues ?? true }

  func examine(
    _ entries: Span<StoredEntry>, maxKeptByteCount: Int, _ budget: inout WorkBudget
  ) throws(CommandFailure) -> Int {
    // Taken out of this object, whose properties are slower.
    guard var finder = finder.take() else { preconditionFailure("the find has begun") }
    let count = finder.examine(entries, maxKeptByteCount: maxKeptByteCount, &budget)
    self.finder = consume finder
    return count
  }

  func join(_ part: any DocumentTask, _ budget: inout WorkBudget) {
    guard let part = part as? FindTask, let other = part.finder.take() else { preconditionFailure("a find has begun") }
    finder?.join(other, &budget)
  }

  func end(_ job: DocumentJob, _ budget: inout WorkBudget) throws(CommandFailure) -> TaskEnd {
    guard let finder = finder.take() else { preconditionFailure("the find has begun") }
    let matchCount = exactCount ?? finder.matchCount
    let page = finder.page(&budget)
    let text = request.isExplained ? job.explanation : request.isCountOnly ? "" : page.bookmark ?? ""
    let result = FindResult(
      revision: job.snapshotRevision, examinedDocuments: UInt64(job.examinedDocuments),
      examinedKeys: UInt64(job.examinedKeys),
      found: UInt64(request.isCountOnly ? matchCount : page.handles.count), nanoseconds: job.elapsedTime,
      text: text)
    guard result.size <= job.limits.maxBodyBytes else {
      throw job.stop(
        request.isExplained
          ? "has an explanation larger than a frame (limits.frame-bytes)"
          : "has a bookmark larger than a frame (limits.frame-bytes); sort by smaller values")
    }
    let handles = request.isCountOnly || request.isExplained ? [] : page.handles
    return .result(.found(FoundDocuments(handles: handles, projection: projection, result: result)))
  }
}
