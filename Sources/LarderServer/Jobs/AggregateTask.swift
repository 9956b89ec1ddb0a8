import Documents
import Wire

/// An aggregation: keeps the groups, and computes the aggregates of each.
final class AggregateTask: DocumentTask {
  let query: DocumentQuery
  let grouping: [FieldPath]?
  private let isExplained: Bool
  private var aggregator: DocumentAggregator

  init(_ request: AggregateRequest, _ body: [UInt8], _ limits: ServerLimits) throws(CommandFailure) {
    isExplained = request.isExplained
    let bytes = body.span
    let none = [UInt8]()
    do throws(SelectorError) {
      query = try DocumentQuery(
        selector: bytes.extracting(request.selector), sort: none.span, fields: none.span, bookmark: none.span)
      let aggregation = try DocumentAggregation(parsing: bytes.extracting(request.aggregation))
      grouping = aggregation.decidingFields
      aggregator = try DocumentAggregator(query.selector, aggregation)
    } catch { throw CommandFailure(error) }
  }

  var keptByteCount: Int { aggregator.keptByteCount }

  func examine(
    _ entries: Span<StoredEntry>, maxKeptByteCount: Int, _ budget: inout WorkBudget
  ) throws(ExaminationFailure) -> Int {
    aggregator.maxKeptByteCount = maxKeptByteCount
    do throws(AggregationError) { return try aggregator.add(entries, &budget) } catch {
      // The job reports that the memory is used up.
      if case .tooManyGroups = error, keptByteCount > maxKeptByteCount { return entries.count }
      throw ExaminationFailure(error)
    }
  }

  func isDivisible(_ count: Int, after examinedCount: Int) -> Bool { true }

  func join(_ part: any DocumentTask, _ budget: inout WorkBudget) throws(ExaminationFailure) -> [UInt32] {
    guard let part = part as? AggregateTask else { preconditionFailure("a part of an aggregation is one") }
    do throws(AggregationError) { try aggregator.join(part.aggregator, &budget) } catch {
      throw ExaminationFailure(error)
    }
    return []
  }

  func end(_ job: DocumentJob, _ budget: inout WorkBudget) throws(ExaminationFailure) -> TaskEnd {
    var rows = PackedRows()
    var failure: CommandFailure?
    do throws(ExhaustedBudgetError) {
      try aggregator.takeGroups(&budget) { group in
        let row = group.json.encoded()
        if EntryRecord.headerSize + row.count > job.limits.maxBodyBytes {
          failure = CommandFailure(.valueTooLarge, "a group is larger than a frame (limits.frame-bytes)")
        } else {
          rows.append(row)
          if rows.byteCount > job.limits.findMemory {
            failure = job.stop("needs more than \(job.limits.findMemory) bytes of memory (limits.find-memory)")
          }
        }
        return failure == nil
      }
    } catch { throw .exhaustedBudget }
    if let failure { throw .failed(failure) }
    let result = FindResult(
      revision: job.snapshotRevision, examinedDocuments: UInt64(job.examinedDocuments),
      examinedKeys: UInt64(job.examinedKeys), found: UInt64(rows.count), nanoseconds: job.elapsedTime,
      text: isExplained ? job.explanation : "")
    guard result.size <= job.limits.maxBodyBytes else {
      throw .failed(job.stop("has an explanation larger than a frame (limits.frame-bytes)"))
    }
    return .result(.rows(AggregatedRows(rows: isExplained ? PackedRows() : rows, result: result)))
  }
}

extension ExaminationFailure {
  fileprivate init(_ error: AggregationError) {
    switch error {
    case .tooManyGroups: self = .failed(CommandFailure(.queryStopped, "\(error.selectorError)"))
    case .exhaustedBudget: self = .exhaustedBudget
    }
  }
}
