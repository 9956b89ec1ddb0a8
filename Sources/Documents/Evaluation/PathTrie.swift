/// A set of paths that are looked for in one pass over a document.
///
/// Made once and only read afterwards.
struct PathTrie: Sendable {
  /// A name that leads from one node to another.
  struct Edge: Sendable {
    let name: [UInt8]
    /// The array index that the name is; nil for other names.
    let index: Int?
    let target: Int
  }

  struct Node: Sendable {
    fileprivate(set) var edges: [Edge] = []
    /// The path that ends here; -1 if none does.
    fileprivate(set) var path = -1
    fileprivate(set) var hasIndexes = false
    fileprivate(set) var hasNames = false
  }

  private(set) var nodes = [Node()]
  private var numbers: [FieldPath: Int] = [:]

  /// How many paths there are; they are numbered from 0.
  private(set) var count = 0

  /// Adds a path unless it is there.
  /// - Returns: Its number.
  mutating func add(_ path: FieldPath) -> Int {
    if let number = numbers[path] { return number }
    var node = 0
    for name in path.names {
      let bytes = Array(name.utf8)
      if let edge = nodes[node].edges.first(where: { $0.name == bytes }) {
        node = edge.target
        continue
      }
      let index = FieldPath.index(name)
      nodes.append(Node())
      nodes[node].edges.append(Edge(name: bytes, index: index, target: nodes.count - 1))
      if index == nil { nodes[node].hasNames = true } else { nodes[node].hasIndexes = true }
      node = nodes.count - 1
    }
    nodes[node].path = count
    numbers[path] = count
    count += 1
    return count - 1
  }
}

/// The values that paths lead to in one document, by their places in its text.
struct PathMatches {
  struct Match {
    let path: Int
    let range: Range<Int>
  }

  private(set) var matches: [Match] = []

  /// Passes a value, and notes what the paths of a node lead to in it. The paths start at the value.
  /// - Parameter depth: How many arrays and objects the value is in.
  mutating func scan(
    _ scanner: inout JSONScanner, _ trie: PathTrie, node: Int = 0, depth: Int = 0, fansOut: Bool = false
  ) throws(JSONScanner.Failure) {
    matches.removeAll(keepingCapacity: true)
    try visit(&scanner, trie, node, depth)
  }

  private mutating func visit(
    _ scanner: inout JSONScanner, _ trie: PathTrie, _ node: Int, _ depth: Int
  ) throws(JSONScanner.Failure) {
    guard let first = scanner.peek() else { throw scanner.failure(.value) }
    let start = scanner.position
    if first == UInt8(ascii: "{"), !trie.nodes[node].edges.isEmpty {
      try visitObject(&scanner, trie, node, depth, namesOnly: false)
    } else if first == UInt8(ascii: "["), !trie.nodes[node].edges.isEmpty {
      try visitArray(&scanner, trie, node, depth)
    } else {
      _ = try scanner.skipValue(depth: depth)
    }
    let path = trie.nodes[node].path
    if path >= 0 { matches.append(Match(path: path, range: start..<scanner.position)) }
  }

  /// - Parameter namesOnly: For an object that is an array's element: names that are indexes were looked for in the array.
  private mutating func visitObject(
    _ scanner: inout JSONScanner, _ trie: PathTrie, _ node: Int, _ depth: Int, namesOnly: Bool
  ) throws(JSONScanner.Failure) {
    guard depth < JSONLimits.deepest else { throw scanner.failure(.lessNesting) }
    let (start, count) = (scanner.position, matches.count)
    // Which edges were found, to notice names that occur twice.
    var found: UInt64 = 0
    scanner.move(to: start + 1)
    if scanner.take(UInt8(ascii: "}")) { return }
    var hasDuplicates = false
    repeat {
      let (name, hasEscapes) = try scanner.takeName()
      if let edge = edge(name, hasEscapes, scanner, trie.nodes[node], namesOnly) {
        let bit = UInt64(1) << UInt64(min(edge, 63))
        if found & bit != 0 { hasDuplicates = true }
        found |= bit
        try visit(&scanner, trie, trie.nodes[node].edges[edge].target, depth + 1)
      } else {
        _ = try scanner.skipValue(depth: depth + 1)
      }
    } while scanner.take(UInt8(ascii: ","))
    guard scanner.take(UInt8(ascii: "}")) else { throw scanner.failure(.commaOrBrace) }
    if hasDuplicates {
      matches.removeSubrange(count...)
      try visitLastMembers(scanner, start, trie, node, depth, namesOnly)
    }
  }

  private func edge(
    _ name: Range<Int>, _ hasEscapes: Bool, _ scanner: JSONScanner, _ node: PathTrie.Node, _ namesOnly: Bool
  ) -> Int? {
    if hasEscapes {
      var text: [UInt8] = []
      JSONString.append(name, of: scanner, to: &text)
      return node.edges.firstIndex { $0.name == text && !(namesOnly && $0.index != nil) }
    }
    let bytes = unsafe scanner.bytes(name)
    for index in node.edges.indices {
      guard node.edges[index].name.count == bytes.count, !(namesOnly && node.edges[index].index != nil) else {
        continue
      }
      if unsafe node.edges[index].name.elementsEqual(bytes) { return index }
    }
    return nil
  }

  /// Goes through an object again of which members have equal names: the last one counts.
  private mutating func visitLastMembers(
    _ scanner: JSONScanner, _ start: Int, _ trie: PathTrie, _ node: Int, _ depth: Int, _ namesOnly: Bool
  ) throws(JSONScanner.Failure) {
    var scanner = scanner
    var places: [Int: Int] = [:]
    scanner.move(to: start + 1)
    repeat {
      let (name, hasEscapes) = try scanner.takeName()
      _ = scanner.peek()
      if let edge = edge(name, hasEscapes, scanner, trie.nodes[node], namesOnly) { places[edge] = scanner.position }
      _ = try scanner.skipValue(depth: depth + 1)
    } while scanner.take(UInt8(ascii: ","))
    for (edge, place) in places.sorted(by: { $0.key < $1.key }) {
      scanner.move(to: place)
      try visit(&scanner, trie, trie.nodes[node].edges[edge].target, depth + 1)
    }
  }

  /// Paths go on with the element whose index they name, or into every element that is an object.
  private mutating func visitArray(
    _ scanner: inout JSONScanner, _ trie: PathTrie, _ node: Int, _ depth: Int
  ) throws(JSONScanner.Failure) {
    guard depth < JSONLimits.deepest else { throw scanner.failure(.lessNesting) }
    scanner.move(to: scanner.position + 1)
    if scanner.take(UInt8(ascii: "]")) { return }
    var index = 0
    repeat {
      guard let first = scanner.peek() else { throw scanner.failure(.value) }
      let start = scanner.position
      var hasPassed = false
      if trie.nodes[node].hasNames, first == UInt8(ascii: "{") {
        try visitObject(&scanner, trie, node, depth + 1, namesOnly: true)
        hasPassed = true
      }
      if trie.nodes[node].hasIndexes {
        for edge in trie.nodes[node].edges where edge.index == index {
          scanner.move(to: start)
          try visit(&scanner, trie, edge.target, depth + 1)
          hasPassed = true
        }
      }
      if !hasPassed { _ = try scanner.skipValue(depth: depth + 1) }
      index += 1
    } while scanner.take(UInt8(ascii: ","))
    guard scanner.take(UInt8(ascii: "]")) else { throw scanner.failure(.commaOrBracket) }
  }
}
