/// The elements that wait for their turn: principals take turns, then the connections of a principal, and then what a
/// connection has waiting. Owned by a `JobRunner`.
struct TurnQueue<Element> {
  private struct Connection {
    let number: UInt64
    var elements: [Element]
  }

  private struct Group {
    let principal: Sharer.Principal
    var connections: [Connection]
  }

  /// In rotation. None of them is empty.
  private var groups: [Group] = []

  var isEmpty: Bool { groups.isEmpty }

  mutating func append(_ element: Element, for sharer: Sharer) {
    guard let group = groups.firstIndex(where: { $0.principal == sharer.principal }) else {
      let connection = Connection(number: sharer.connection, elements: [element])
      return groups.append(Group(principal: sharer.principal, connections: [connection]))
    }
    if let connection = groups[group].connections.firstIndex(where: { $0.number == sharer.connection }) {
      groups[group].connections[connection].elements.append(element)
    } else {
      groups[group].connections.append(Connection(number: sharer.connection, elements: [element]))
    }
  }

  mutating func popFirst() -> Element? {
    guard !groups.isEmpty else { return nil }
    var group = groups.removeFirst()
    var connection = group.connections.removeFirst()
    let element = connection.elements.removeFirst()
    if !connection.elements.isEmpty { group.connections.append(connection) }
    if !group.connections.isEmpty { groups.append(group) }
    return element
  }
}
