/// Elements in the order of their deadlines: a binary heap.
struct DeadlineQueue<Element> {
  typealias Instant = ContinuousClock.Instant

  private var heap: [(deadline: Instant, element: Element)] = []

  var count: Int { heap.count }

  /// The earliest deadline.
  var first: Instant? { heap.first?.deadline }

  /// - Complexity: O(log *n*).
  mutating func insert(_ element: Element, at deadline: Instant) {
    heap.append((deadline, element))
    var child = heap.count - 1
    while child > 0, heap[child].deadline < heap[(child - 1) / 2].deadline {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Removes and returns the element with the earliest deadline, if that is not after an instant.
  /// - Complexity: O(log *n*).
  mutating func popFirst(through instant: Instant) -> (deadline: Instant, element: Element)? {
    guard let first = heap.first, first.deadline <= instant else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      siftDown(from: 0)
    }
    return first
  }

  /// Removes the elements for which `isRemoved` returns true.
  /// - Complexity: O(*n*).
  mutating func removeAll(where isRemoved: (Instant, Element) -> Bool) {
    heap.removeAll { isRemoved($0.deadline, $0.element) }
    for parent in (0..<heap.count / 2).reversed() { siftDown(from: parent) }
  }

  private mutating func siftDown(from start: Int) {
    var parent = start
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
        if heap[child].deadline < heap[least].deadline { least = child }
      }
      guard least != parent else { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
