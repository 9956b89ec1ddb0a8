import Documents
import Wire

/// An aggregation: keeps the groups, and computes the aggregates of each.
final class AggregateTask: DocumentTask {
  let query: DocumentQuery
  private let maxKeptByteCount: Int
  /// nil after `end`.
  private var aggregator: DocumentAggregator?

  init(_ request: AggregateRequest, _ body: [UInt8], _ limits: ServerLimits) throws(JobFailure) {
    maxKeptByteCount = limits.findMemory
    let bytes = body.span
    let none = [UInt8]()
    do throws(SelectorError) {
      query = try DocumentQuery(
        selector: bytes.extracting(request.selector), sort: none.span, fields: none.span, bookmark: none.span)
      let aggregation = try DocumentAggregation(parsing: bytes.extracting(request.aggregation))
      var aggregator = try DocumentAggregator(query.selector, aggregation)
      aggregator.maxKeptByteCount = limits.findMemory
      self.aggregator = aggregator
    } catch { throw JobFailure(error) }
  }

  var keptByteCount: Int { aggregator?.keptByteCount ?? 0 }

  func examine(_ value: Span<UInt8>, key: Span<UInt8>, of entry: EntryHead) -> JobFailure? {
    do throws(SelectorError) {
      _ = try aggregator?.add(value, key: key, revision: entry.revision)
      return nil
    } catch {
      // The job reports that the memory is used up.
      return keptByteCount > maxKeptByteCount ? nil : JobFailure(.queryStopped, "\(error)")
    }
  }

  func end(_ job: DocumentJob) throws(JobFailure) -> TaskEnd {
    guard let aggregator = aggregator.take() else { preconditionFailure("an aggregation ends once") }
    var rows: [[UInt8]] = []
    var byteCount = 0
    for group in aggregator.result() {
      let row = group.json.encoded()
      guard EntryRecord.headerSize + row.count <= job.limits.maxFrameBytes - Frame.minLength else {
        throw JobFailure(.valueTooLarge, "a group is larger than a frame (limits.frame-bytes)")
      }
      byteCount += row.count + MemoryLayout<[UInt8]>.stride
      guard byteCount <= job.limits.findMemory else {
        throw job.stop("needs more than \(job.limits.findMemory) bytes of memory (limits.find-memory)")
      }
      rows.append(row)
    }
    let result = FindResult(
      revision: job.snapshotRevision, examinedDocuments: UInt64(job.examinedDocuments),
      examinedKeys: UInt64(job.examinedKeys), found: UInt64(rows.count), nanoseconds: job.elapsedTime)
    return .result(.rows(AggregatedRows(rows: rows, byteCount: byteCount, result: result)))
  }
}
