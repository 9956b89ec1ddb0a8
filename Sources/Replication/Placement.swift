import Storage

/// Which server is to lead a store that nobody leads: all servers choose the same one, and each gets about as many stores
/// (rendezvous hashing).
enum Placement {
  /// Returns the node that the store prefers.
  static func node(for store: String, of nodes: some Sequence<NodeState>) -> NodeState? {
    nodes.max { (score($0, store), $0.name) < (score($1, store), $1.name) }
  }

  /// The FNV-1a hash of both names, mixed so that similar names have nothing in common.
  private static func score(_ node: NodeState, _ store: String) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in [Array(node.name.utf8), [0], Array(store.utf8)].joined() {
      hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
    }
    hash = (hash ^ hash >> 33) &* 0xFF51_AFD7_ED55_8CCD
    return hash ^ hash >> 33
  }
}

/// Stores that a server shares with others: one by its name, or those whose names begin alike.
package struct StorePattern: Equatable, Sendable {
  private let prefix: String
  private let isWholeName: Bool

  /// - Parameter text: A name, or the beginning of names and `*`.
  package init(_ text: String) throws {
    isWholeName = !text.hasSuffix("*")
    prefix = isWholeName ? text : String(text.dropLast())
    if isWholeName || !prefix.isEmpty { _ = try StoreName(prefix) }
  }

  func matches(_ name: StoreName) -> Bool { isWholeName ? name.text == prefix : name.text.hasPrefix(prefix) }
}
