import Testing

@testable import Documents

@Suite struct DocumentAggregatorTests {
  private static let packages = [
    Document(#"{"name":"bash","section":"shells","size":7,"tags":["a","b"]}"#, id: "bash"),
    Document(#"{"name":"dash","section":"shells","size":2.5,"tags":"a"}"#, id: "dash"),
    Document(#"{"name":"libc","section":"libs","size":9007199254740993}"#, id: "libc"),
    Document(#"{"name":"zlib","section":"libs","size":1}"#, id: "zlib"),
    Document(#"{"name":"odd","size":null,"tags":[]}"#, id: "odd"),
    Document("[1]", id: "no document"),
  ]

  @Test func `documents are counted`() throws {
    #expect(try Self.packages.count(.all) == 5)
    #expect(try Self.packages.count(Selector(parsing: #"{"section":"libs"}"#)) == 2)
  }

  @Test func `distinct values are in order and those of arrays are their elements`() throws {
    #expect(try Self.packages.distinct("section") == ["libs", "shells"])
    #expect(try Self.packages.distinct("tags") == ["a", "b"])
    #expect(try Self.packages.distinct("size") == [nil, 1, 2.5, 7, 9_007_199_254_740_993])
    #expect(try Self.packages.distinct("_id", Selector(parsing: #"{"section":"libs"}"#)) == ["libc", "zlib"])
    #expect(try Self.packages.distinct("absent") == [])
  }

  @Test func `groups have counts, sums, extremes and averages`() throws {
    let groups = try Self.packages.groups(
      by: ["section"], computing: [.count, .sum("size"), .min("size"), .max("size"), .average("size"), .max("name")])
    #expect(
      groups == [
        DocumentGroup(key: [nil], values: [1, 0, nil, nil, nil, "odd"]),
        DocumentGroup(
          key: ["libs"],
          values: [2, 9_007_199_254_740_994, 1, 9_007_199_254_740_993, 4_503_599_627_370_497, "zlib"]),
        DocumentGroup(key: ["shells"], values: [2, 9.5, 2.5, 7, 4.75, "dash"]),
      ])
  }

  @Test func `a document is in the group of each of its elements`() throws {
    let groups = try Self.packages.groups(by: ["tags", "section"])
    #expect(
      groups == [
        DocumentGroup(key: [nil, nil], values: [1]),
        DocumentGroup(key: [nil, "libs"], values: [2]),
        DocumentGroup(key: ["a", "shells"], values: [2]),
        DocumentGroup(key: ["b", "shells"], values: [1]),
      ])
  }

  @Test func `an aggregation without fields has one group, even if no document matches`() throws {
    #expect(try [Document]().groups(by: []) == [DocumentGroup(key: [], values: [0])])
    #expect(try Self.packages.groups(by: [], computing: [.average("size")]).count == 1)
  }

  @Test func `a sum includes all values of a field, also infinities`() throws {
    func values(_ texts: String...) throws -> [JSONValue?] {
      try texts.map { Document(#"{"n":\#($0)}"#) }.groups(by: [], computing: [.sum("n"), .average("n")])[0].values
    }
    #expect(try values("[1e308,1e308,-1e999]") == [.double(-.infinity), .double(-.infinity)])
    #expect(try values("[1e308,1e308]", "-1e999") == [.double(-.infinity), .double(-.infinity)])
    #expect(try values("[1e308,1e308]", "[-1e308,-1e308]") == [.double(.infinity), .double(.infinity)])
    #expect(try values("[1e999,1]", "-1e999") == [nil, nil])
    #expect(try values("[1,2]", "[3.5,4]", #""x""#, "[]") == [10.5, 2.625])
    #expect(try values("[9223372036854775807,1]", "-2") == [.integer(.max - 1), .double(0x1p63 / 3)])
  }

  @Test func `integers are summed exactly, and rounded where they don't fit`() throws {
    let documents = [Int64.max, 1, -2].map { Document(#"{"n":\#($0)}"#) }
    #expect(try documents.groups(by: [], computing: [.sum("n")])[0].values == [.integer(.max - 1)])
    #expect(try documents.prefix(2).groups(by: [], computing: [.sum("n")])[0].values == [.double(0x1p63)])
  }
}
