import TestSupport
import Testing

@testable import Storage

@Suite struct OrderIndexTests {
  private struct Order: ~Copyable {
    var space = RecordSpace()
    var index = OrderTree<Records>()

    mutating func insert(_ key: String) throws -> UInt32 {
      let handle = try space.add(key.bytes)
      try index.reserve()
      index.insert(handle, key: space.key(handle), in: space.arena.records)
      return handle
    }

    mutating func remove(_ handle: UInt32) throws {
      try index.reserve()
      index.remove(handle, key: space.key(handle), in: space.arena.records)
    }

    var leafFill: Double {
      var (leaves, records) = (0, 0)
      index.visitNodes(root: index.root) { _, node in
        if node.isLeaf { (leaves, records) = (leaves + 1, records + node.count) }
      }
      return Double(records) / Double(leaves * OrderNode.leafCapacity)
    }
  }

  private static func name(_ number: Int) -> String {
    let digits = String(number)
    return "user:" + String(repeating: "0", count: 7 - digits.count) + digits
  }

  @Test(arguments: [false, true])
  func `inserting in ascending or descending order fills the leaves`(descending: Bool) throws {
    var order = Order()
    let numbers = Array(0..<30_000)
    for number in descending ? numbers.reversed() : numbers { _ = try order.insert(Self.name(number)) }
    order.index.validate(in: order.space.arena)
    let fill = order.leafFill
    #expect(fill > 0.99)
  }

  @Test func `random insertion leaves the leaves more than 80% full`() throws {
    var random = SeededGenerator.announced()
    var order = Order()
    for number in (0..<40_000).shuffled(using: &random) { _ = try order.insert(Self.name(number)) }
    order.index.validate(in: order.space.arena)
    let fill = order.leafFill
    #expect(fill > 0.8)
  }

  @Test func `random removal keeps the tree balanced until it is empty`() throws {
    var random = SeededGenerator.announced()
    var order = Order()
    var handles: [UInt32] = []
    for number in 0..<30_000 { handles.append(try order.insert(Self.name(number))) }
    handles.shuffle(using: &random)
    while let handle = handles.popLast() {
      try order.remove(handle)
      if handles.count % 3_000 == 0 {
        order.index.validate(in: order.space.arena)
        let fill = order.leafFill
        #expect(handles.count < 200 || fill > 0.5)
      }
    }
    let (count, nodes) = (order.index.count, order.index.nodesInUse)
    #expect(count == 0)
    #expect(nodes == 1)
  }

  @Test func `the rank of a bound is the number of keys before it`() throws {
    var order = Order()
    for key in ["a", "ab", "abc", "abd", "b", "ba", "\u{7F}"] { _ = try order.insert(key) }
    func rank(_ text: String, _ bound: Key.Bound) -> Int {
      unsafe text.bytes.withUnsafeBytes { bytes in
        let key = unsafe Key(start: bytes.baseAddress!, count: bytes.count)
        return order.index.rank(key, bound, root: order.index.root, in: order.space.arena.records)
      }
    }
    #expect(rank("ab", .lower) == 1)
    #expect(rank("ab", .upper) == 2)
    #expect(rank("ab", .prefixEnd) == 4)
    #expect(rank("abcd", .lower) == 3)
    #expect(rank("abcd", .prefixEnd) == 3)
    #expect(rank("0", .prefixEnd) == 0)
    #expect(rank("z", .lower) == 6)
    #expect(rank("\u{7F}", .prefixEnd) == 7)
  }

  @Test func `a snapshot's tree stays the same while the live tree changes`() throws {
    var random = SeededGenerator.announced()
    var order = Order()
    var handles: [UInt32] = []
    for number in (0..<20_000).shuffled(using: &random) { handles.append(try order.insert(Self.name(number))) }
    var before: [UInt32] = []
    _ = order.index.visit(0..<20_000, reverse: false, root: order.index.root, in: order.space.arena.records) {
      before.append($0)
      return true
    }
    let root = order.index.root
    order.index.beginEpoch(after: 1)
    handles.shuffle(using: &random)
    for handle in handles.prefix(10_000) { try order.remove(handle) }
    for number in 20_000..<25_000 { _ = try order.insert(Self.name(number)) }
    order.index.validate(in: order.space.arena)
    var after: [UInt32] = []
    _ = order.index.visit(0..<20_000, reverse: false, root: root, in: order.space.arena.records) {
      after.append($0)
      return true
    }
    #expect(after == before)
    let accounted = order.index.reachableNodeCount + order.index.replacedNodes.count
    #expect(accounted == order.index.nodesInUse)
  }
}
