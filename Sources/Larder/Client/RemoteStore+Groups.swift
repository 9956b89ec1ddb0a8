import Documents
import Wire

extension RemoteStore {
  /// Returns the groups of the documents that match a selector, in the order of the values that they are grouped by.
  ///
  ///     let pets = try await store.groups(by: ["pet.species"], computing: [.count, .average("age")])
  ///
  /// The server computes them. One that can't sends all entries, and the client computes them.
  /// - Parameters:
  ///   - selector: Which documents are in a group.
  ///   - fields: The fields to group by, up to 32. Without any, all documents are one group.
  ///   - aggregates: What is computed from each group, in this order: up to 32.
  ///   - sort: What the groups are sorted by first: some of the aggregates or fields.
  ///   - limit: The maximum number of groups to return; nil for all.
  /// - Throws: `illegalArgument` if the selector exceeds a limit or needs a text index, if there are too many fields or
  ///   aggregates, or if groups are sorted by what they don't have; `queryStopped` if there are too many groups, or grouping exceeds another limit of the server.
  public func groups(
    of selector: Selector = .all, by fields: [FieldPath], computing aggregates: [Aggregate] = [.count],
    sortedBy sort: [GroupOrder] = [], limit: Int? = nil
  ) async throws(LarderError) -> [DocumentGroup] {
    let aggregation = DocumentAggregation(by: fields, computing: aggregates, sort: sort, limit: limit)
    let deadline = findDeadline
    var (body, rest): ([UInt8], ReplyStreamReader?)
    do throws(LarderError) {
      (body, rest) = try await stream(
        AggregateDocumentsRequest(selector, aggregation, time: findTime), deadline: deadline)
    } catch {
      guard error.kind == .unknownOperation else { throw error }
      return try await groupsAmongAll(selector, aggregation)
    }
    var groups: [DocumentGroup] = []
    while let stream = rest {
      guard try Self.appendGroups(in: body, to: &groups) == nil else { throw .malformedReply }
      let next = try await stream.next(deadline: deadline.instant)
      body = next.body
      if !next.hasMore { rest = nil }
    }
    guard try Self.appendGroups(in: body, to: &groups) != nil else { throw .malformedReply }
    return groups
  }

  /// Groups the documents that match a selector without returning the groups, and returns how the server did that.
  ///
  /// As many groups as the statistics' `returnedDocumentCount` would have been returned.
  /// - Throws: As `groups(of:by:computing:sortedBy:limit:)`; `unknownOperation` if the server can't explain groups.
  public func explainGroups(
    of selector: Selector = .all, by fields: [FieldPath], computing aggregates: [Aggregate] = [.count],
    sortedBy sort: [GroupOrder] = [], limit: Int? = nil
  ) async throws(LarderError) -> FindExplanation {
    let aggregation = DocumentAggregation(by: fields, computing: aggregates, sort: sort, limit: limit)
    let request = AggregateDocumentsRequest(selector, aggregation, isExplained: true, time: findTime)
    let body = try await stream(request, deadline: findDeadline).body
    guard let result = unsafe FindResult(body.span.bytes, at: 0), let explanation = FindExplanation(result) else {
      throw .malformedReply
    }
    return explanation
  }

  /// Returns the different values that a field has in the documents that match a selector, in their total order. Of an
  /// array, the elements count.
  /// - Throws: As `groups(of:by:computing:)`.
  public func distinct(_ field: FieldPath, _ selector: Selector = .all) async throws(LarderError) -> [JSONValue] {
    try await groups(of: selector, by: [field], computing: []).compactMap { $0.key.first ?? nil }
  }

  /// Appends the groups of a frame.
  /// - Returns: The result of the whole request, if the frame ends with it.
  private static func appendGroups(
    in body: [UInt8], to groups: inout [DocumentGroup]
  ) throws(LarderError) -> FindResult? {
    let bytes = unsafe body.span.bytes
    var offset = 0
    while offset < bytes.byteCount {
      guard let record = EntryRecord(bytes, at: offset) else {
        guard let result = FindResult(bytes, at: offset) else { throw .malformedReply }
        return result
      }
      let text = bytes.extracting(record.value).toArray()
      guard record.kind == .single, let json = try? JSONValue(parsing: text.span), let group = DocumentGroup(json: json)
      else { throw .malformedReply }
      groups.append(group)
      offset = record.end
    }
    return nil
  }

  /// Groups documents among all entries, for a server that can't group them.
  private func groupsAmongAll(
    _ selector: Selector, _ aggregation: DocumentAggregation
  ) async throws(LarderError) -> [DocumentGroup] {
    var aggregator: DocumentAggregator
    do throws(SelectorError) {
      aggregator = try DocumentAggregator(selector, aggregation)
    } catch { throw LarderError(.illegalArgument, outcome: .rejected, "\(error)") }
    var entries = all().makeAsyncIterator()
    while let entry = try await entries.next() {
      guard let bytes = entry.bytes else { continue }
      do throws(SelectorError) {
        try aggregator.add(Document(bytes, id: entry.key, revision: entry.revision))
      } catch { throw LarderError(.queryStopped, outcome: .rejected, "\(error)") }
    }
    return aggregator.result()
  }
}
