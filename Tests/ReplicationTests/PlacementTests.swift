import Storage
import Testing

@testable import Replication

struct PlacementTests {
  private func nodes(_ names: [String]) -> [NodeState] {
    names.enumerated().map { number, name in
      NodeState(
        node: Node(id: Int64(number), epoch: 1), name: name, address: name, lease: 1, beat: 0, isLive: true)
    }
  }

  @Test func `stores spread over the nodes, and only those of a node that has gone move`() throws {
    let all = nodes(["kitchen", "pantry", "cellar"])
    var counts: [String: Int] = [:]
    for number in 0..<3_000 {
      let store = "orders-\(number)"
      let chosen = try #require(Placement.node(for: store, of: all))
      #expect(Placement.node(for: store, of: all.reversed()) == chosen)
      counts[chosen.name, default: 0] += 1
      let rest = all.filter { $0.name != "cellar" }
      if chosen.name != "cellar" { #expect(Placement.node(for: store, of: rest) == chosen) }
    }
    #expect(counts.count == 3 && counts.values.allSatisfy { (900...1_100).contains($0) }, "\(counts)")
    #expect(Placement.node(for: "orders", of: []) == nil)
  }

  @Test func `patterns are names, or the beginning of names`() throws {
    let name = try StoreName("orders-2026")
    #expect(try StorePattern("orders-2026").matches(name) && StorePattern("orders-*").matches(name))
    #expect(try StorePattern("*").matches(name))
    #expect(try !StorePattern("orders-").matches(name) && !StorePattern("carts*").matches(name))
    for text in ["", "or*ders", "**", "a b", "-*"] { #expect(throws: StorageError.self) { try StorePattern(text) } }
  }
}
