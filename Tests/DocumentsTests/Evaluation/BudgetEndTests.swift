import DocumentTestSupport
import TestSupport
import Testing

@testable import Documents

/// What work returns whose budget ends early: nothing. It throws, whichever unit was the last one.
@Suite struct BudgetEndTests {
  private static let keySizes = [1, 5, 62, 64, 94, 127, 700, 3_000]

  /// Documents in random order whose field `k` has values of that size, in bytes, a few of them equal.
  private static func documents(keySize: Int, _ random: inout SeededGenerator) -> [Document] {
    let count = keySize > 100 ? 8 : 12
    return (0..<count).map { number in
      let digits = "\(Int.random(in: 0..<count, using: &random))"
      let key = String(repeating: "k", count: max(0, keySize - digits.count)) + digits
      return Document(#"{"k":"\#(key)","n":\#(number % 5),"a":[\#(number),"\#(key)"]}"#, id: "\(number)", revision: 1)
    }
  }

  /// Does some work with budgets of one unit, two, and so on, until one suffices.
  /// - Parameter work: Returns the result with a budget.
  private func expectWholeResults<Result: Equatable>(
    _ name: String, _ work: (inout WorkBudget) throws -> Result
  ) throws {
    var budget = WorkBudget()
    let whole = try work(&budget)
    let unitCount = budget.spentUnits
    // Where there are many units, each of the first ones and of the last ones, and some between them.
    let step = SeededGenerator.isThorough ? 1 : max(1, unitCount / 150)
    var (units, failureCount) = (0, 0)
    while units < unitCount {
      var budget = WorkBudget(units: units)
      do {
        let result = try work(&budget)
        Issue.record("\(name): the result with \(units) of \(unitCount) units is \(result)")
        return
      } catch {
        failureCount += 1
        #expect(error is ExhaustedBudgetError || error is AggregationError, "\(name): \(error)")
      }
      units += units < 100 || units > unitCount - 100 ? 1 : min(step, unitCount - 100 - units + 1)
    }
    var exact = WorkBudget(units: unitCount)
    let result = try work(&exact)
    #expect(result == whole && failureCount > 0, "\(name)")
  }

  private static func withEntries<Result>(
    _ documents: ArraySlice<Document>, _ body: (StoredEntry) throws -> Result
  ) rethrows {
    for position in documents.indices {
      let document = documents[position]
      _ = try StoredEntry.withTrust(
        key: document.id!, document.text, revision: document.revision!, handle: UInt32(position), body)
    }
  }

  private struct Page: Equatable {
    let handles: [UInt32]
    let bookmark: String?
    let matchCount: Int
  }

  private func page(_ query: DocumentQuery, _ documents: [Document], partCount: Int, _ budget: inout WorkBudget) throws
    -> Page
  {
    func finder(_ part: ArraySlice<Document>, _ budget: inout WorkBudget) throws -> EntryFinder {
      var finder = try EntryFinder(query, isOrdered: query.sort.isEmpty && partCount == 1)
      try Self.withEntries(part) { entry in
        if !finder.isFinished { _ = try finder.examine([entry].span, &budget) }
      }
      return finder
    }
    let size = documents.count / partCount
    var whole = try finder(documents[..<size], &budget)
    for part in 1..<max(partCount, 1) where partCount > 1 {
      try whole.join(finder(documents[part * size..<(part + 1) * size], &budget), &budget)
    }
    let matchCount = whole.matchCount
    let page = try whole.page(&budget)
    return Page(handles: page.handles, bookmark: page.bookmark, matchCount: matchCount)
  }

  @Test(arguments: keySizes)
  func `a find is whole or throws`(keySize: Int) throws {
    var random = SeededGenerator.announced()
    let documents = Self.documents(keySize: keySize, &random)
    let selectors = ["{}", #"{"n":{"$ne":2}}"#, #"{"$or":[{"k":{"$regex":"[13]$"}},{"a":{"$like":"*4"}}]}"#]
    for sort in [[], [.ascending("k")], [.descending("k"), .ascending("n")]] as [[SortField]] {
      for limit in [nil, 3] {
        var query = DocumentQuery(try Selector(parsing: selectors.randomElement(using: &random)!), sort: sort)
        query.limit = limit
        try expectWholeResults("\(query)") { try page(query, documents, partCount: 1, &$0) }
        if !sort.isEmpty {
          try expectWholeResults("parts of \(query)") { try page(query, documents, partCount: 2, &$0) }
        }
      }
    }
  }

  @Test(arguments: keySizes)
  func `groups are whole or throw`(keySize: Int) throws {
    var random = SeededGenerator.announced()
    let documents = Self.documents(keySize: keySize, &random)
    let aggregates: [Aggregate] = [.count, .max("a"), .sum("n"), .min("k")]
    for aggregation in [
      DocumentAggregation(by: ["k"], computing: aggregates),
      DocumentAggregation(
        by: ["a", "n"], computing: aggregates, sort: [GroupOrder(.aggregate(.max("a")), .descending)]),
    ] {
      try expectWholeResults("\(aggregation)") { budget in
        var aggregator = try DocumentAggregator(.all, aggregation)
        var other = aggregator
        try Self.withEntries(documents[..<4]) { _ = try aggregator.add([$0].span, &budget) }
        try Self.withEntries(documents[4...]) { _ = try other.add([$0].span, &budget) }
        try aggregator.join(other, &budget)
        var groups: [DocumentGroup] = []
        try aggregator.takeGroups(&budget) { group in
          groups.append(group)
          return true
        }
        return groups
      }
    }
  }

  @Test(arguments: keySizes)
  func `a selector answers or throws`(keySize: Int) throws {
    var random = SeededGenerator.announced()
    let documents = Self.documents(keySize: keySize, &random)
    for text in [
      #"{"k":{"$regex":"(k|[0-9])+1$"}}"#, #"{"a":{"$not":{"$eq":3}}}"#, #"{"a":{"$elemMatch":{"$gt":3}}}"#,
      #"{"a":{"$allMatch":{"$ne":3}}}"#, #"{"$expr":{"$eq":[{"$field":"a"},{"$field":"k"}]}}"#,
      #"{"$expr":{"$lt":[{"$add":[{"$field":"a"},1]},{"$max":"a"}]}}"#, #"{"k":{"$like":"k*k*2"}}"#,
      #"{"k":{"$contains":"K1","$options":"c"}}"#, #"{"$nor":[{"k":{"$in":["k1","k2"]}},{"n":{"$mod":[2,1]}}]}"#,
    ] {
      // Used again and again, because it keeps what it has computed.
      var selector = try EntrySelector(Selector(parsing: text))
      try expectWholeResults(text) { budget in
        var matches: [Bool] = []
        try Self.withEntries(documents[...]) { matches.append(try selector.matches($0, &budget)) }
        return matches
      }
    }
  }
}
