import Testing

@testable import Documents

@Suite struct IndexLayoutTests {
  @Test func `an index whose last field is descending is laid out in the opposite directions`() throws {
    for (directions, isDescending, isReversed) in [
      ([.ascending], [false], false), ([.descending], [false], true),
      ([.ascending, .descending], [true, false], true), ([.descending, .ascending], [true, false], false),
      ([.descending, .ascending, .descending], [false, true, false], true),
    ] as [([SortField.Direction], [Bool], Bool)] {
      let fields = directions.enumerated().map { SortField(FieldPath(names: ["f\($0)"]), $1) }
      let layout = IndexLayout(try DocumentIndex(fields))
      #expect(layout.fields.map(\.isDescending) == isDescending, "\(directions)")
      #expect(layout.fields.map(\.path) == fields.map(\.path))
      #expect(layout.isReversed == isReversed, "\(directions)")
    }
  }

  @Test func `the key of a descending field is complemented`() throws {
    let layout = IndexLayout(try DocumentIndex([.descending("a"), "b"]))
    var key: [UInt8] = []
    layout.append([1, 0xFE], asField: 0, to: &key)
    layout.append([1, 0xFE], asField: 1, to: &key)
    #expect(key == [0xFE, 1, 1, 0xFE])
  }

  @Test(
    arguments: [([1, 2], [1, 3]), ([1, 0xFF], [2]), ([0, 0xFF, 0xFF], [1]), ([0xFF, 0xFF], nil), ([], nil)]
      as [([UInt8], [UInt8]?)])
  func `the successor of a prefix follows all that begins with it`(_ prefix: [UInt8], _ successor: [UInt8]?) {
    #expect(IndexRange.successor(of: prefix) == successor)
  }
}
