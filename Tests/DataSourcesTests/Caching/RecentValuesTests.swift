import TestSupport
import Testing

@testable import DataSources

@Suite struct RecentValuesTests {
  @Test func `the least recently used value goes first`() {
    var values = RecentValues<String, Int>(limit: 3)
    for (number, key) in ["a", "b", "c"].enumerated() { values.insert(number, for: key) }
    #expect(values.value(of: "a") == 0)
    values.insert(3, for: "d")
    #expect(values.value(of: "b") == nil)
    values.insert(9, for: "c")
    values.insert(4, for: "e")
    #expect(values.value(of: "a") == nil && values.value(of: "c") == 9)
    #expect(values.count == 3)
  }

  @Test func `random calls have the same results as on a plain list`() {
    var generator = SeededGenerator.announced()
    for limit in [1, 2, 7] {
      var values = RecentValues<Int, Int>(limit: limit)
      // The least recently used first.
      var model: [(key: Int, value: Int)] = []
      for round in 0..<3_000 {
        let key = Int.random(in: 0..<10, using: &generator)
        let index = model.firstIndex { $0.key == key }
        switch Int.random(in: 0..<10, using: &generator) {
        case 0..<4:
          #expect(values.value(of: key) == index.map { model[$0].value })
          if let index { model.append(model.remove(at: index)) }
        case 4..<8:
          values.insert(round, for: key)
          if let index { model.remove(at: index) } else if model.count == limit { model.removeFirst() }
          model.append((key, round))
        case 8:
          values.remove(key)
          if let index { model.remove(at: index) }
        default:
          if round % 100 == 0 {
            values.removeAll()
            model = []
          }
        }
        #expect(values.count == model.count)
      }
    }
  }
}
