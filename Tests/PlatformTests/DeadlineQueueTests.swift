import Basics
import TestSupport
import Testing

struct DeadlineQueueTests {
  @Test func `elements leave in the order of their deadlines`() {
    var random = SeededGenerator.announced()
    var queue = DeadlineQueue<Duration, Int>()
    for _ in 0..<100 {
      let deadlines = (0..<Int.random(in: 0..<50, using: &random)).map { _ in
        Duration.seconds(Int.random(in: 0..<20, using: &random))
      }
      for (number, deadline) in deadlines.enumerated() { queue.insert(number, at: deadline) }
      #expect(queue.count == deadlines.count)
      #expect(queue.first == deadlines.min())
      var popped: [(Duration, Int)] = []
      for limit in [5, 12, 20] {
        while let next = queue.popFirst(through: .seconds(limit)) { popped.append(next) }
        #expect(popped.count == deadlines.count { $0 <= .seconds(limit) })
      }
      #expect(popped.map(\.0) == deadlines.sorted())
      #expect(popped.allSatisfy { deadlines[$1] == $0 })
      #expect(popped.map(\.1).sorted() == Array(deadlines.indices))
    }
  }
}
