/// The field paths that one pass over a document looks for, laid out in memory for speed: looking up a name allocates
/// nothing and counts no references. Its owner keeps the memory by its `storage`.
///
/// Safe because the memory never changes, because nodes and edges are numbered by it, and because a table is used only
/// while its storage is there.
@safe
struct PathTable: @unchecked Sendable {
  struct Node {
    /// The first of the node's edges, which follow each other.
    fileprivate let firstEdge: Int32
    let edgeCount: Int32
    /// The path that ends here; -1 if none does.
    let path: Int32
    let hasIndexes: Bool
    let hasNames: Bool

    @inline(__always)
    var isLeaf: Bool { edgeCount == 0 }
  }

  /// A name that leads from one node to another.
  struct Edge {
    /// The first eight bytes of the name and its closing quote. If there are fewer, zeros follow, here and in the mask.
    fileprivate let start: UInt64
    fileprivate let mask: UInt64
    fileprivate let nameStart: Int32
    /// The size of the name without its quotes, in bytes.
    let nameCount: Int32
    /// The array index that the name is; -1 for other names.
    let index: Int
    let target: Int32
    /// The position of the edge among those of its node.
    let ordinal: Int32
  }

  /// A node and the name of one of its edges.
  fileprivate struct Place: Hashable {
    let node: Int
    let name: [UInt8]
  }

  /// A node and the array index that one of its edges is.
  fileprivate struct IndexPlace: Hashable {
    let node: Int
    let index: Int
  }

  /// The memory of a table.
  @safe
  final class Storage: @unchecked Sendable {
    fileprivate let nodes: UnsafeMutablePointer<Node>
    fileprivate let edges: UnsafeMutablePointer<Edge>
    fileprivate let names: UnsafeMutablePointer<UInt8>
    /// The edges of nodes with many, by their names.
    fileprivate let places: [Place: Int]
    /// The edges of nodes with many, by the array indexes that they are.
    fileprivate let indexPlaces: [IndexPlace: Int]
    private let count: Int
    fileprivate let idEdge: Int
    fileprivate let revisionEdge: Int

    fileprivate init(
      _ nodes: [Node], _ edges: [Edge], names: [UInt8], _ places: [Place: Int], _ indexPlaces: [IndexPlace: Int],
      count: Int, idEdge: Int, revisionEdge: Int
    ) {
      unsafe self.nodes = Self.memory(nodes)
      unsafe self.edges = Self.memory(edges)
      unsafe self.names = Self.memory(names)
      self.places = places
      self.indexPlaces = indexPlaces
      self.count = count
      (self.idEdge, self.revisionEdge) = (idEdge, revisionEdge)
    }

    deinit {
      unsafe nodes.deallocate()
      unsafe edges.deallocate()
      unsafe names.deallocate()
    }

    private static func memory<Element: BitwiseCopyable>(_ elements: [Element]) -> UnsafeMutablePointer<Element> {
      let memory = UnsafeMutablePointer<Element>.allocate(capacity: elements.count)
      _ = unsafe UnsafeMutableBufferPointer(start: memory, count: elements.count).initialize(fromContentsOf: elements)
      return unsafe memory
    }

    /// The table, which is valid as long as this object.
    var table: PathTable { PathTable(self, count: count, fansOut: true) }
    /// The same table, whose paths lead into arrays by indexes only.
    var tableOfIndexes: PathTable { PathTable(self, count: count, fansOut: false) }
  }

  private let nodes: UnsafeMutablePointer<Node>
  private let edges: UnsafeMutablePointer<Edge>
  /// The names of all edges with their closing quotes, one after the other.
  private let names: UnsafeMutablePointer<UInt8>
  private unowned(unsafe) let storage: Storage

  /// The number of paths, which are numbered from 0.
  let count: Int
  /// Whether names lead to the members of all objects in an array.
  let fansOut: Bool
  /// The edges of the root that are named `_id` and `_rev`; -1 for a name that no path starts with.
  let idEdge: Int
  let revisionEdge: Int

  /// Nodes with more edges than this are searched by `places` and `indexPlaces`.
  private static let maxComparedCount = 16

  private init(_ storage: Storage, count: Int, fansOut: Bool) {
    unsafe nodes = storage.nodes
    unsafe edges = storage.edges
    unsafe names = storage.names
    unsafe self.storage = storage
    self.count = count
    self.fansOut = fansOut
    (idEdge, revisionEdge) = (storage.idEdge, storage.revisionEdge)
  }

  /// Lays the paths of a trie out in memory.
  static func storage(of trie: PathTrie) -> Storage {
    var (nodes, edges, names): ([Node], [Edge], [UInt8]) = ([], [], [])
    var places: [Place: Int] = [:]
    var indexPlaces: [IndexPlace: Int] = [:]
    // Breadth first, so that a node's edges follow each other.
    var queue = [trie.root]
    while nodes.count < queue.count {
      let node = queue[nodes.count]
      let firstEdge = edges.count
      for (ordinal, edge) in node.edges.enumerated() {
        if node.edges.count > maxComparedCount {
          places[Place(node: nodes.count, name: edge.name)] = edges.count
          if let index = edge.index { indexPlaces[IndexPlace(node: nodes.count, index: index)] = edges.count }
        }
        let quoted = edge.name + [UInt8(ascii: "\"")]
        edges.append(
          Edge(
            start: word(quoted), mask: word(quoted.map { _ in 0xFF }), nameStart: Int32(names.count),
            nameCount: Int32(edge.name.count), index: edge.index ?? -1, target: Int32(queue.count),
            ordinal: Int32(ordinal)))
        names += quoted
        queue.append(edge.target)
      }
      nodes.append(
        Node(
          firstEdge: Int32(firstEdge), edgeCount: Int32(node.edges.count), path: Int32(node.path ?? -1),
          hasIndexes: node.edges.contains { $0.index != nil }, hasNames: node.edges.contains { $0.index == nil }))
    }
    func rootEdge(_ name: String) -> Int { trie.root.edges.firstIndex { $0.name.elementsEqual(name.utf8) } ?? -1 }
    return Storage(
      nodes, edges, names: names, places, indexPlaces, count: trie.count, idEdge: rootEdge(Document.idName),
      revisionEdge: rootEdge(Document.revisionName))
  }

  /// Returns the first eight bytes as a little-endian word, with zeros after fewer.
  private static func word(_ bytes: [UInt8]) -> UInt64 {
    bytes.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  @inline(__always)
  func node(_ node: Int) -> Node { unsafe nodes[node] }

  @inline(__always)
  func edge(_ edge: Int) -> Edge { unsafe edges[edge] }

  /// Returns whether a node has so few edges that names are compared with them.
  @inline(__always)
  func isCompared(_ node: Node) -> Bool { node.edgeCount <= Self.maxComparedCount }

  /// Returns the edge of a node for a member's name without escapes; -1 if there is none.
  /// - Parameter start: Where the name begins, after its opening quote.
  @inline(__always)
  func comparedEdge(of node: Node, at start: Int, in text: JSONText) -> Int {
    let word = text.word(at: start)
    var edge = Int(node.firstEdge)
    let end = edge &+ Int(node.edgeCount)
    while edge < end {
      if unsafe word & edges[edge].mask == edges[edge].start,
        unsafe edges[edge].nameCount < 8 || hasRest(edge, at: start, in: text)
      {
        return edge
      }
      edge &+= 1
    }
    return -1
  }

  /// Returns whether a name that begins with the same word as an edge's is the edge's.
  private func hasRest(_ edge: Int, at start: Int, in text: JSONText) -> Bool {
    let (count, first) = unsafe (Int(edges[edge].nameCount), Int(edges[edge].nameStart))
    guard start + count < text.end else { return false }
    for offset in 8...count {
      guard unsafe names[first + offset] == text[start + offset] else { return false }
    }
    return true
  }

  /// Returns the edge of a node for a member's name; -1 if there is none.
  @inline(never)
  func searchedEdge(of node: Int, _ name: Range<Int>, in text: JSONText) -> Int {
    var bytes: [UInt8] = []
    JSONString.append(name, of: text, to: &bytes)
    if isCompared(self.node(node)) { return comparedEdge(of: self.node(node), bytes) }
    return unsafe storage.places[Place(node: node, name: bytes)] ?? -1
  }

  private func comparedEdge(of node: Node, _ name: [UInt8]) -> Int {
    let first = Int(node.firstEdge)
    return (first..<first + Int(node.edgeCount)).first { edge in
      let (start, count) = unsafe (Int(edges[edge].nameStart), Int(edges[edge].nameCount))
      return unsafe name.elementsEqual(UnsafeBufferPointer(start: names + start, count: count))
    } ?? -1
  }

  /// Returns the edge of a node for an element of an array; -1 if there is none.
  func edge(of number: Int, index: Int) -> Int {
    let node = node(number)
    guard isCompared(node) else { return unsafe storage.indexPlaces[IndexPlace(node: number, index: index)] ?? -1 }
    let first = Int(node.firstEdge)
    return (first..<first + Int(node.edgeCount)).first { unsafe edges[$0].index == index } ?? -1
  }
}
