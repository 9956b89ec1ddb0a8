/// Elements in the order of their deadlines: a binary heap.
package struct DeadlineQueue<Deadline: Comparable, Element> {
  private var heap: [(deadline: Deadline, element: Element)] = []

  package init() {}

  package var count: Int { heap.count }

  /// The earliest deadline.
  package var first: Deadline? { heap.first?.deadline }

  /// - Complexity: O(log *n*).
  package mutating func insert(_ element: Element, at deadline: Deadline) {
    heap.append((deadline, element))
    var child = heap.count - 1
    while child > 0, heap[child].deadline < heap[(child - 1) / 2].deadline {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Removes and returns the element with the earliest deadline, if that is not after another one.
  /// - Complexity: O(log *n*).
  package mutating func popFirst(through limit: Deadline) -> (deadline: Deadline, element: Element)? {
    guard let first = heap.first, first.deadline <= limit else { return nil }
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    var parent = 0
    while true {
      var child = 2 * parent + 1
      guard child < heap.count else { return first }
      if child + 1 < heap.count, heap[child + 1].deadline < heap[child].deadline { child += 1 }
      guard heap[child].deadline < heap[parent].deadline else { return first }
      heap.swapAt(parent, child)
      parent = child
    }
  }
}

extension DeadlineQueue: Sendable where Deadline: Sendable, Element: Sendable {}
