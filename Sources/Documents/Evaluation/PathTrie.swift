/// A set of field paths that one pass over a document looks for.
///
/// Nodes and edges are plain numbers in two arrays, so that looking them up counts no references.
struct PathTrie: Sendable {
  struct Node {
    /// The first of the node's edges, which are linked; -1 if there are none.
    fileprivate(set) var firstEdge = -1
    fileprivate(set) var edgeCount = 0
    /// The path that ends here; -1 if none does.
    fileprivate(set) var path = -1
    fileprivate(set) var hasIndexes = false
    fileprivate(set) var hasNames = false

    @inline(__always)
    var isLeaf: Bool { firstEdge < 0 }
  }

  /// A name that leads from one node to another.
  struct Edge {
    /// The first eight bytes of the name, with zeros after a shorter name.
    fileprivate let start: UInt64
    fileprivate let name: Range<Int>
    /// The next edge of the node; -1 if there is none.
    fileprivate let next: Int
    /// The array index that the name is; -1 for other names.
    let index: Int
    let target: Int
    /// The number of edges that the node got before this one.
    let ordinal: Int
  }

  /// A node and the name of one of its edges.
  private struct Place: Hashable {
    let node: Int
    let name: [UInt8]
  }

  private var nodes = [Node()]
  private var edges: [Edge] = []
  /// The names of all edges, one after the other.
  private var names: [UInt8] = []
  private var places: [Place: Int] = [:]
  private var numbers: [FieldPath: Int] = [:]

  /// Nodes with more edges than this are searched by `places`.
  private static let maxSearchedCount = 16

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
      let place = Place(node: node, name: Array(name.utf8))
      let edge = places[place] ?? append(place)
      if node == 0, name == Document.idName { idEdge = edge }
      if node == 0, name == Document.revisionName { revisionEdge = edge }
      node = edges[edge].target
    }
    let number = count
    nodes[node].path = number
    numbers[path] = number
    return number
  }

  /// Adds an edge to a node.
  private mutating func append(_ place: Place) -> Int {
    let index = FieldPath.index(String(decoding: place.name, as: UTF8.self))
    let start = place.name.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    edges.append(
      Edge(
        start: start, name: names.count..<names.count + place.name.count, next: nodes[place.node].firstEdge,
        index: index ?? -1, target: nodes.count, ordinal: nodes[place.node].edgeCount))
    nodes.append(Node())
    names += place.name
    places[place] = edges.count - 1
    nodes[place.node].firstEdge = edges.count - 1
    nodes[place.node].edgeCount += 1
    if index == nil { nodes[place.node].hasNames = true } else { nodes[place.node].hasIndexes = true }
    return edges.count - 1
  }

  @inline(__always)
  func node(_ node: Int) -> Node { nodes[node] }

  @inline(__always)
  func edge(_ edge: Int) -> Edge { edges[edge] }

  /// Returns the edge of a node for a member's name.
  @inline(__always)
  func edge(of node: Int, _ name: Range<Int>, hasEscapes: Bool, in scanner: JSONScanner) -> Int? {
    if hasEscapes || nodes[node].edgeCount > Self.maxSearchedCount { return searchedEdge(of: node, name, in: scanner) }
    let start = scanner.word(name)
    var edge = nodes[node].firstEdge
    while edge >= 0 {
      if edges[edge].start == start, edges[edge].name.count == name.count, hasEqualRest(edge, name, in: scanner) {
        return edge
      }
      edge = edges[edge].next
    }
    return nil
  }

  /// Returns whether a name that begins with the same word as an edge's is the edge's.
  @inline(__always)
  private func hasEqualRest(_ edge: Int, _ name: Range<Int>, in scanner: JSONScanner) -> Bool {
    guard name.count > 8 else { return true }
    for offset in 8..<name.count where names[edges[edge].name.lowerBound + offset] != scanner[name.lowerBound + offset]
    {
      return false
    }
    return true
  }

  @inline(never)
  private func searchedEdge(of node: Int, _ name: Range<Int>, in scanner: JSONScanner) -> Int? {
    var text: [UInt8] = []
    JSONString.append(name, of: scanner, to: &text)
    return places[Place(node: node, name: text)]
  }

  /// Returns the edge of a node for an element of an array.
  func edge(of node: Int, index: Int) -> Int? {
    var edge = nodes[node].firstEdge
    while edge >= 0 {
      if edges[edge].index == index { return edge }
      edge = edges[edge].next
    }
    return nil
  }
}

extension JSONScanner {
  /// Returns the first eight bytes of a range as a little-endian word, with zeros after a shorter range.
  @inline(__always)
  fileprivate func word(_ range: Range<Int>) -> UInt64 {
    guard range.lowerBound &+ 8 <= end else {
      return range.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64(self[$1]) }
    }
    let bytes = unsafe bytes(range.lowerBound..<range.lowerBound &+ 8)
    let word = unsafe UnsafeRawPointer(bytes.baseAddress.unsafelyUnwrapped).loadUnaligned(as: UInt64.self)
    return range.count >= 8 ? word : word & ((1 &<< UInt64(range.count &* 8)) &- 1)
  }
}
