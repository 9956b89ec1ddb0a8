/// The fields that an update changes, as a tree of their names: what it does to each, ready to be applied.
///
/// A node stands for one field. Nodes are numbered from 0, which is the document; a node's number is larger than its
/// parent's. The tree is made by `Builder` and only read afterwards.
struct UpdateTree: Sendable {
  enum Action: Sendable {
    /// Changes what is in an object by name or in an array by index.
    case descend
    /// Changes what is in an object, and replaces any other value by an object.
    case merge
    /// Replaces the value by JSON text.
    case set([UInt8])
    case remove
    case increment(JSONNumber)
    /// Appends elements, given as JSON text with commas between them.
    case push([UInt8])
  }

  struct Node: Sendable {
    let name: String
    fileprivate let nameByteCount: Int
    let parent: Int
    let action: Action
    /// In the order of the update.
    fileprivate(set) var children: [Int] = []
    /// The children whose names are indexes, by index.
    fileprivate(set) var childrenByIndex: [(index: Int, node: Int)] = []
    /// The children by the size of their names, then by their bytes; empty if there are few.
    fileprivate var childrenByName: [Int] = []
    /// A Boolean value that indicates whether the field exists after the update, even if it was missing.
    fileprivate(set) var creates = false

    fileprivate init(name: String, parent: Int, action: Action) {
      self.name = name
      nameByteCount = name.utf8.count
      self.parent = parent
      self.action = action
    }
  }

  private let nodes: [Node]
  private let isMergePatch: Bool
  /// How deeply nested the most deeply nested change makes a document, at least.
  let depth: Int
  private let deepestNode: Int

  /// Up to how many children are searched one by one.
  private static let maxSearched = 8

  var count: Int { nodes.count }
  subscript(node: Int) -> Node { nodes[node] }

  /// The child with a name; nil if there is none.
  @inline(__always)
  func child(of node: Int, named name: UnsafeBufferPointer<UInt8>) -> Int? {
    let children = nodes[node].children
    if children.count > Self.maxSearched { return unsafe search(nodes[node].childrenByName, name) }
    for child in children where nodes[child].nameByteCount == name.count {
      if unsafe nodes[child].name.utf8.elementsEqual(name) { return child }
    }
    return nil
  }

  private func search(_ children: [Int], _ name: UnsafeBufferPointer<UInt8>) -> Int? {
    var (low, high) = (0, children.count)
    while low < high {
      let middle = (low + high) / 2
      let order = unsafe Self.order(nodes[children[middle]].name, name)
      if order == 0 { return children[middle] }
      if order < 0 { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  /// Compares by size, then by bytes: negative, zero or positive.
  private static func order(_ left: String, _ right: some Collection<UInt8>) -> Int {
    let left = left.utf8
    if left.count != right.count { return left.count - right.count }
    for (left, right) in zip(left, right) where left != right { return Int(left) - Int(right) }
    return 0
  }

  // MARK: Errors

  /// The path of a node's field in the document, as text.
  func path(of node: Int) -> String { Self.text(of: names(of: node)) }

  private func names(of node: Int) -> [String] {
    var (names, node) = ([String](), node)
    while node > 0 {
      names.append(nodes[node].name)
      node = nodes[node].parent
    }
    return names.reversed()
  }

  /// A path as text that an update's parser reads back, with a backslash before each `$` that begins a name.
  static func text(of names: [String]) -> String {
    names.map { FieldPath(names: [$0]).description }.joined(separator: ".")
  }

  /// The first change of a field in a node, or the node itself.
  func firstChange(in node: Int) -> Int {
    var node = node
    while case .descend = nodes[node].action, let first = nodes[node].children.first {
      node = nodes[node].children.first { nodes[$0].creates } ?? first
    }
    return node
  }

  /// An error about a change, whose path is that of the change in the update's JSON.
  func error(_ code: DocumentUpdateError.Code, at node: Int, _ reason: String) -> DocumentUpdateError {
    if isMergePatch {
      return DocumentUpdateError(code, at: (["$"] + names(of: node)).joined(separator: "."), reason)
    }
    return DocumentUpdateError(code, at: "$.\(Self.operatorName(nodes[node].action)).\(path(of: node))", reason)
  }

  private static func operatorName(_ action: Action) -> String {
    switch action {
    case .descend, .merge, .set: "$set"
    case .remove: "$unset"
    case .increment: "$inc"
    case .push: "$push"
    }
  }

  func checkDepth(_ maxDepth: Int) throws(DocumentUpdateError) {
    guard depth > maxDepth else { return }
    throw error(
      .resultTooDeep, at: deepestNode,
      "the document would be nested at least \(depth) levels deep, and \(maxDepth) are allowed")
  }
}

extension UpdateTree {
  /// Makes a tree, change by change.
  struct Builder {
    private struct Step: Hashable {
      let node: Int
      let name: [UInt8]
    }

    private let isMergePatch: Bool
    private var nodes: [Node]
    private var steps: [Step: Int] = [:]
    private var (depth, deepestNode) = (1, 0)

    init(isMergePatch: Bool) {
      self.isMergePatch = isMergePatch
      nodes = [Node(name: "", parent: -1, action: isMergePatch ? .merge : .descend)]
    }

    /// Adds a child whose name no other child of the node has.
    /// - Parameter depth: How deeply nested the change makes a document.
    /// - Returns: The child.
    @discardableResult
    mutating func add(_ name: String, to parent: Int, _ action: Action, depth: Int) -> Int {
      nodes.append(Node(name: name, parent: parent, action: action))
      let node = nodes.count - 1
      nodes[parent].children.append(node)
      if depth > self.depth { (self.depth, deepestNode) = (depth, node) }
      return node
    }

    /// Adds a change of the field at a path, unless another change is in its way.
    /// - Returns: The path of a change of the same field, of one in it, or of one that it is in; nil if there is none.
    mutating func add(_ path: FieldPath, _ action: Action, depth: Int) -> String? {
      var node = 0
      for (position, name) in path.names.enumerated() {
        let (step, isLast) = (Step(node: node, name: Array(name.utf8)), position == path.names.count - 1)
        if let next = steps[step] {
          guard !isLast, case .descend = nodes[next].action else {
            let tree = finish()
            return tree.path(of: tree.firstChange(in: next))
          }
          node = next
        } else {
          node = add(name, to: node, isLast ? action : .descend, depth: isLast ? depth : 0)
          steps[step] = node
        }
      }
      return nil
    }

    func finish() -> UpdateTree {
      var nodes = nodes
      for node in nodes.indices.reversed() {
        switch nodes[node].action {
        case .merge, .set, .increment, .push: nodes[node].creates = true
        case .descend: nodes[node].creates = nodes[node].children.contains { nodes[$0].creates }
        case .remove: break
        }
        let children = nodes[node].children
        if case .descend = nodes[node].action {
          nodes[node].childrenByIndex = children.compactMap { child in
            FieldPath.index(nodes[child].name).map { (index: $0, node: child) }
          }
          .sorted { $0.index < $1.index }
        }
        if children.count > UpdateTree.maxSearched {
          nodes[node].childrenByName = children.sorted { UpdateTree.order(nodes[$0].name, nodes[$1].name.utf8) < 0 }
        }
      }
      return UpdateTree(nodes: nodes, isMergePatch: isMergePatch, depth: depth, deepestNode: deepestNode)
    }
  }
}
