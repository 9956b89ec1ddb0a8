import Testing

@testable import Documents

/// What single documents cost that are made to be expensive. Work is counted in units, and not in time.
@Suite struct WorkBudgetTests {
  private static func list(_ count: Int, _ element: (Int) -> String) -> String {
    (0..<count).map(element).joined(separator: ",")
  }

  /// Returns a document with fields of that many elements.
  private static func document(_ count: Int) -> [UInt8] {
    Array(
      """
      {"n":[\(list(count) { "\($0)" })],"s":[\(list(count) { #""text number \#($0)""# })],\
      "o":[\(list(count) { #"{"k":\#($0),"n":[\#($0)]}"# })],\
      "m":{\(list(count) { #""name\#($0)":1"# })},"t":"\(list(count) { "text number \($0)" })"}
      """.utf8)
  }

  /// Returns the units that matching a document takes.
  private static func units(_ selector: String, _ document: [UInt8], limit: Int = .max / 2) throws -> Int {
    var budget = WorkBudget(units: limit)
    let compiled = try CompiledSelector(Selector(parsing: selector))
    let isMatch = try? compiled.matches(document.span, &budget)
    #expect((isMatch == nil) == (limit < .max / 2))
    return budget.spentUnits
  }

  /// Returns selectors with that many conditions, none of which helps to decide early.
  private static func hostileSelectors(_ count: Int) -> [(name: String, selector: String)] {
    let ranges = list(count) { #"{"$gt":\#(1_000_000 + $0)}"# }
    let regexes = list(count) { #"{"$regex":"q+\#($0)$"}"# }
    return [
      ("$or", #"{"n":{"$or":[\#(ranges)]}}"#),
      ("$nor", #"{"n":{"$nor":[\#(ranges)]}}"#),
      ("$elemMatch", #"{"n":{"$elemMatch":{"$or":[\#(ranges)]}}}"#),
      ("$allMatch", #"{"n":{"$allMatch":{"$nor":[\#(ranges)]}}}"#),
      ("$not", #"{"$or":[\#(list(count) { #"{"n":{"$not":{"$lt":\#(1_000_000 + $0)}}}"# })]}"#),
      ("members", #"{"$or":[\#(list(count) { #"{"o.k":{"$lt":-\#($0)}}"# })]}"#),
      ("members of elements", #"{"o":{"$elemMatch":{"$or":[\#(list(count) { #"{"n":{"$lt":-\#($0)}}"# })]}}}"#),
      ("names", #"{"m":{"$keyMapMatch":{"$or":[\#(list(count) { #"{"$endsWith":"x\#($0)"}"# })]}}}"#),
      ("regular expressions", #"{"s":{"$or":[\#(regexes)]}}"#),
      (
        "regular expressions over a long text",
        #"{"t":{"$or":[\#(list(count) { #"{"$regex":"(a|b|[^q])+[qz]\#($0)$"}"# })]}}"#
      ),
      ("patterns", #"{"t":{"$or":[\#(list(count) { #"{"$like":"*\#($0)*x*y*z*"}"# })]}}"#),
      ("substrings", #"{"t":{"$or":[\#(list(count) { #"{"$contains":"x\#($0)","$options":"c"}"# })]}}"#),
      ("types", #"{"$or":[\#(list(count) { #"{"n":{"$all":["x",\#($0)]}}"# })]}"#),
      ("sizes", #"{"$or":[\#(list(count) { #"{"n":{"$size":\#(1_000_000 + $0)}}"# })]}"#),
      ("remainders", #"{"n":{"$or":[\#(list(count) { #"{"$mod":[1000000,-\#($0 + 1)]}"# })]}}"#),
      (
        "sums", #"{"$or":[\#(list(count) { #"{"$expr":{"$lt":[{"$sum":"n"},-\#($0)]}}"# })]}"#
      ),
      (
        "pairs", #"{"$or":[\#(list(count) { #"{"$expr":{"$lt":[{"$add":[{"$field":"n"},\#($0)]},-1]}}"# })]}"#
      ),
      (
        "counts",
        #"{"$or":[\#(list(count) { #"{"$expr":{"$lt":[{"$count":{"$field":"o","$where":{"k":\#($0)}}},0]}}"# })]}"#
      ),
    ]
  }

  @Test func `evaluation ends soon after its budget is exhausted, whatever it does`() throws {
    let document = Self.document(1_000)
    for (name, selector) in Self.hostileSelectors(120) {
      let whole = try Self.units(selector, document)
      #expect(whole > 80_000, "\(name): \(whole)")
      for limit in [1, 5_000, 15_000] {
        let spent = try Self.units(selector, document, limit: limit)
        // Folding the long text is the largest step.
        #expect(spent < limit + 20_000, "\(name): \(spent) of \(limit)")
      }
    }
  }

  @Test func `work grows with the document and with the conditions, and not faster`() throws {
    let (small, large) = (Self.document(500), Self.document(1_000))
    let (few, many) = (Self.hostileSelectors(20), Self.hostileSelectors(40))
    for (few, many) in zip(few, many) {
      let units = try Self.units(few.selector, small)
      #expect(try Double(Self.units(few.selector, large)) < 2.5 * Double(units), "\(few.name)")
      #expect(try Double(Self.units(many.selector, small)) < 2.5 * Double(units), "\(few.name)")
    }
  }

  @Test(arguments: ["$or", "$nor"])
  func `many equalities of a field take no more work than a few`(_ name: String) throws {
    let document = Self.document(2_000)
    func units(_ count: Int) throws -> Int {
      try Self.units(#"{"\#(name)":[\#(Self.list(count) { #"{"n":\#(1_000_000 + $0)}"# })]}"#, document)
    }
    let (few, many) = (try units(20), try units(2_000))
    #expect(many < few * 3 / 2, "\(few), \(many)")
  }

  @Test func `many conditions that exclude values take no more work than a few`() throws {
    let document = Self.document(2_000)
    func units(_ count: Int) throws -> Int {
      let conditions = Self.list(count) { #"{"$not":{"n":{"$eq":\#(1_000_000 + $0)}}}"# }
      return try Self.units(#"{"$and":[\#(conditions)]}"#, document)
    }
    #expect(try units(2_000) < units(20) * 3 / 2)
  }

  // MARK: Groups

  /// Aggregates one document by its elements.
  private func aggregate(_ count: Int) throws -> (groups: [DocumentGroup], units: Int) {
    let text = Array(#"{"a":[\#(Self.list(count) { "\($0)" })]}"#.utf8)
    var aggregator = try DocumentAggregator(
      groupedBy: ["a"], computing: [.count, .sum("a"), .average("a"), .min("a"), .max("a")])
    var budget = WorkBudget()
    _ = try StoredEntry.withTrust(key: "k", text, revision: 1) { try aggregator.add([$0].span, &budget) }
    let units = budget.spentUnits
    return (aggregator.result(), units)
  }

  @Test func `grouping by an array and summing it takes work that is linear in its size`() throws {
    let (groups, units) = try aggregate(1_000)
    #expect(
      groups
        == (0..<1_000).map { DocumentGroup(key: [.integer(Int64($0))], values: [1, 499_500, 499.5, 0, 999]) })
    #expect(try aggregate(2_000).units < units * 5 / 2)
  }

  @Test func `grouping ends soon after its budget is exhausted`() throws {
    let list = Self.list(300) { "\($0)" }
    let text = Array(#"{"a":[\#(list)],"b":[\#(list)],"c":[\#(list)]}"#.utf8)
    var aggregator = try DocumentAggregator(groupedBy: ["a", "b", "c"])
    var budget = WorkBudget(units: 100_000)
    let count = try? StoredEntry.withTrust(key: "k", text, revision: 1) { try aggregator.add([$0].span, &budget) }
    #expect(count == nil)
    let (isExhausted, spentUnits) = (budget.isExhausted, budget.spentUnits)
    #expect(isExhausted && spentUnits < 101_000)
  }

  // MARK: Grants

  @Test func `a work budget requests more until it is refused`() throws {
    var grants = 0
    var budget = WorkBudget {
      grants += 1
      return grants < 3
    }
    var spentCount = 0
    while budget.spend() { spentCount += 1 }
    #expect(spentCount / WorkBudget.unitsPerGrant == 3)
    let isExhausted = budget.isExhausted
    #expect(isExhausted && grants == 3)
    let canSpend = budget.spend()
    #expect(!canSpend && grants == 3)
  }
}
