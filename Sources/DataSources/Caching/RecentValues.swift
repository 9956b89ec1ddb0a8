/// Values by key that, at their limit, lose the least recently used one. Every call is O(1).
package struct RecentValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// An element of a list in the order of use. Nodes are linked by their positions.
  private struct Node {
    var key: Key
    var value: Value
    var newer: Int?
    var older: Int?
  }

  private let limit: Int
  private var nodes: [Node] = []
  private var positions: [Key: Int] = [:]
  private var newest: Int?
  private var oldest: Int?

  /// - Parameter limit: The maximum number of values; at least 1.
  package init(limit: Int) {
    precondition(limit > 0, "limit is not positive")
    self.limit = limit
  }

  /// The number of values.
  package var count: Int { nodes.count }

  /// Returns the value of a key, and makes it the most recently used one.
  package mutating func value(of key: Key) -> Value? {
    guard let position = positions[key] else { return nil }
    moveToFront(position)
    return nodes[position].value
  }

  /// Adds or replaces the value of a key, which becomes the most recently used one.
  package mutating func insert(_ value: Value, for key: Key) {
    if let position = positions[key] {
      nodes[position].value = value
      moveToFront(position)
      return
    }
    if nodes.count == limit, let oldest { remove(at: oldest) }
    positions[key] = nodes.count
    nodes.append(Node(key: key, value: value))
    link(nodes.count - 1)
  }

  /// Removes the value of a key, if there is one.
  package mutating func remove(_ key: Key) {
    if let position = positions[key] { remove(at: position) }
  }

  /// Removes all values.
  package mutating func removeAll() {
    self = RecentValues(limit: limit)
  }

  private mutating func moveToFront(_ position: Int) {
    guard newest != position else { return }
    unlink(position)
    link(position)
  }

  /// Removes a node, and moves the last one to its position.
  private mutating func remove(at position: Int) {
    unlink(position)
    positions[nodes[position].key] = nil
    let last = nodes.removeLast()
    guard position < nodes.count else { return }
    nodes[position] = last
    positions[last.key] = position
    if let newer = last.newer { nodes[newer].older = position } else { newest = position }
    if let older = last.older { nodes[older].newer = position } else { oldest = position }
  }

  /// Makes a node that is not in the list its newest one.
  private mutating func link(_ position: Int) {
    nodes[position].newer = nil
    nodes[position].older = newest
    if let newest { nodes[newest].newer = position } else { oldest = position }
    newest = position
  }

  private mutating func unlink(_ position: Int) {
    let (newer, older) = (nodes[position].newer, nodes[position].older)
    if let newer { nodes[newer].older = older } else { newest = older }
    if let older { nodes[older].newer = newer } else { oldest = newer }
  }
}
