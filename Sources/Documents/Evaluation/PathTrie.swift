/// A set of field paths, to be put into a `PathTable`.
struct PathTrie {
  struct Edge {
    let name: [UInt8]
    /// The array index that the name is; nil for other names.
    let index: Int?
    var target = Node()
  }

  struct Node {
    fileprivate(set) var edges: [Edge] = []
    /// The path that ends here.
    fileprivate(set) var path: Int?
    fileprivate var positions: [[UInt8]: Int] = [:]

    fileprivate mutating func add(_ names: ArraySlice<String>, _ path: Int) {
      guard let name = names.first else {
        self.path = path
        return
      }
      let bytes = Array(name.utf8)
      let position = positions[bytes] ?? edges.count
      if position == edges.count {
        edges.append(Edge(name: bytes, index: FieldPath.index(name)))
        positions[bytes] = position
      }
      edges[position].target.add(names.dropFirst(), path)
    }
  }

  private(set) var root = Node()
  private var numbers: [FieldPath: Int] = [:]

  /// The number of paths, which are numbered from 0.
  var count: Int { numbers.count }

  /// Adds a path unless it is in the set.
  /// - Returns: Its number.
  mutating func add(_ path: FieldPath) -> Int {
    if let number = numbers[path] { return number }
    let number = count
    numbers[path] = number
    root.add(path.names[...], number)
    return number
  }
}
