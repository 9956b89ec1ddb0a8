/// A set of field paths that one pass over a document looks for.
struct PathTrie: Sendable {
  /// A name that leads from one node to another.
  struct Edge: Sendable {
    private let name: [UInt8]
    private let start: UInt64
    private let count: Int
    /// The array index that the name is; nil for other names.
    let index: Int?
    let target: Int

    fileprivate init(_ name: [UInt8], to target: Int) {
      self.name = name
      self.target = target
      start = unsafe name.withUnsafeBufferPointer { unsafe Self.start(of: $0, isFollowed: false) }
      count = name.count
      index = FieldPath.index(String(decoding: name, as: UTF8.self))
    }

    /// The first eight bytes of a name as a word, with zeros after a shorter name.
    /// - Parameter isFollowed: Whether at least eight bytes can be read.
    @unsafe @inline(__always)
    static func start(of name: UnsafeBufferPointer<UInt8>, isFollowed: Bool) -> UInt64 {
      guard name.count < 8 else {
        return unsafe UnsafeRawPointer(name.baseAddress.unsafelyUnwrapped).loadUnaligned(as: UInt64.self)
      }
      guard !isFollowed else {
        let word = unsafe UnsafeRawPointer(name.baseAddress.unsafelyUnwrapped).loadUnaligned(as: UInt64.self)
        return word & ((1 &<< UInt64(name.count &* 8)) &- 1)
      }
      var word: UInt64 = 0
      for index in 0..<name.count { unsafe word |= UInt64(name[index]) &<< UInt64(index &* 8) }
      return word
    }

    @unsafe @inline(__always)
    fileprivate func has(_ name: UnsafeBufferPointer<UInt8>, start: UInt64) -> Bool {
      guard self.start == start, count == name.count else { return false }
      return unsafe count <= 8 || self.name.elementsEqual(name)
    }
  }

  struct Node: Sendable {
    private(set) var edges: [Edge] = []
    /// The path that ends here; -1 if none does.
    fileprivate(set) var path = -1
    private(set) var hasIndexes = false
    private(set) var hasNames = false
    /// For nodes with many edges, the edges by name.
    private var positions: [[UInt8]: Int] = [:]
    private static let maxSearchedCount = 16

    fileprivate mutating func append(_ edge: Edge, _ name: [UInt8]) {
      edges.append(edge)
      if edge.index == nil { hasNames = true } else { hasIndexes = true }
      positions[name] = edges.count - 1
    }

    fileprivate func edge(named name: [UInt8]) -> Int? { positions[name] }

    /// Returns the edge of a member's name.
    @inline(__always)
    func edge(_ name: Range<Int>, hasEscapes: Bool, of scanner: JSONScanner) -> Int? {
      if hasEscapes || edges.count > Self.maxSearchedCount { return searchedEdge(name, of: scanner) }
      let bytes = unsafe scanner.bytes(name)
      let start = unsafe Edge.start(of: bytes, isFollowed: name.lowerBound &+ 8 <= scanner.end)
      for index in edges.indices where unsafe edges[index].has(bytes, start: start) { return index }
      return nil
    }

    @inline(never)
    private func searchedEdge(_ name: Range<Int>, of scanner: JSONScanner) -> Int? {
      var text: [UInt8] = []
      JSONString.append(name, of: scanner, to: &text)
      return positions[text]
    }
  }

  private(set) var nodes = [Node()]
  private var numbers: [FieldPath: Int] = [:]

  /// The number of paths, which are numbered from 0.
  var count: Int { numbers.count }

  /// The edges of the root that are named `_id` and `_rev`; nil for a name that no path starts with.
  private(set) var idEdge: Int?
  private(set) var revisionEdge: Int?

  /// Adds a path unless it is in the set.
  /// - Returns: Its number.
  mutating func add(_ path: FieldPath) -> Int {
    if let number = numbers[path] { return number }
    var node = 0
    for name in path.names {
      let bytes = Array(name.utf8)
      if let edge = nodes[node].edge(named: bytes) {
        node = nodes[node].edges[edge].target
        continue
      }
      nodes.append(Node())
      nodes[node].append(Edge(bytes, to: nodes.count - 1), bytes)
      if node == 0, name == Document.idName { idEdge = nodes[0].edges.count - 1 }
      if node == 0, name == Document.revisionName { revisionEdge = nodes[0].edges.count - 1 }
      node = nodes.count - 1
    }
    let number = count
    nodes[node].path = number
    numbers[path] = number
    return number
  }
}
