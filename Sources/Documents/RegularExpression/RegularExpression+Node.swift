extension RegularExpression {
  /// The syntax tree of a pattern, with all flags resolved. `Limit.nesting` bounds its depth.
  indirect enum Node: Sendable {
    /// One code point, which may be a surrogate and then never matches.
    case scalar(UInt32)
    case set(CharacterSet)
    case assertion(Assertion)
    case concatenation([Node])
    case alternation([Node])
    /// The minimum and maximum number of repetitions. Without a maximum, there is no limit.
    case repetition(Node, Int, Int?)

    /// The node that matches the empty text and compiles to nothing.
    static let empty = Node.concatenation([])

    private var isEmpty: Bool { if case .concatenation(let nodes) = self { nodes.isEmpty } else { false } }

    /// Creates the concatenation of some nodes, without those that are empty.
    init(concatenating nodes: [Node]) {
      let nodes = nodes.filter { !$0.isEmpty }
      self = nodes.count == 1 ? nodes[0] : .concatenation(nodes)
    }

    /// Creates the alternation of one or more nodes, which is a set if all of them are code points.
    init(alternating nodes: [Node]) {
      let items = nodes.compactMap {
        if case .scalar(let value) = $0 { CharacterSet.Item.range(value...value) } else { nil }
      }
      self = nodes.count == 1 ? nodes[0] : items.count == nodes.count ? .set(CharacterSet(items)) : .alternation(nodes)
    }

    /// Creates the repetition of a node.
    init(repeating node: Node, _ minimum: Int, _ maximum: Int?) {
      if node.isEmpty || maximum == 0 {
        self = .empty
      } else {
        self = minimum == 1 && maximum == 1 ? node : .repetition(node, minimum, maximum)
      }
    }

    /// The literal that every match begins with.
    struct Outline {
      var prefix: [Unicode.Scalar] = []
      /// A Boolean value that indicates whether the prefix is all that a match consists of.
      var isExact = true
    }

    /// A Boolean value that indicates whether every match begins at the start of the text.
    var isAnchoredAtStart: Bool {
      switch self {
      case .assertion(.textStart): true
      case .concatenation(let nodes): nodes.first?.isAnchoredAtStart ?? false
      case .alternation(let nodes): nodes.allSatisfy { $0.isAnchoredAtStart }
      case .repetition(let node, let minimum, _): minimum > 0 && node.isAnchoredAtStart
      case .scalar, .set, .assertion: false
      }
    }

    /// Returns the literal that every match begins with. If the pattern is anchored at the start of the text, leading
    /// anchors are skipped.
    func outline() -> Outline {
      var outline = Outline()
      var skipsAnchors = isAnchoredAtStart
      extend(&outline, &skipsAnchors)
      return outline
    }

    private func extend(_ outline: inout Outline, _ skipsAnchors: inout Bool) {
      guard outline.isExact else { return }
      switch self {
      case .scalar(let value):
        skipsAnchors = false
        if let scalar = Unicode.Scalar(value), outline.prefix.count < 1_024 {
          outline.prefix.append(scalar)
        } else {
          outline.isExact = false
        }
      case .assertion(.textStart) where skipsAnchors:
        break
      case .concatenation(let nodes):
        for node in nodes where outline.isExact { node.extend(&outline, &skipsAnchors) }
      case .repetition(let node, let minimum, let maximum):
        if minimum > 0 { node.extend(&outline, &skipsAnchors) }
        if minimum != 1 || maximum != 1 { outline.isExact = false }
      case .set, .assertion, .alternation:
        outline.isExact = false
      }
    }

    /// Returns the longest literal found that is part of every match. It is empty if there is none.
    func requiredLiteral() -> [Unicode.Scalar] {
      var search = RequiredLiteralSearch()
      search.visit(self)
      return search.finish()
    }
  }

  /// The state of a search for the longest literal that is part of every match.
  private struct RequiredLiteralSearch {
    private var run: [Unicode.Scalar] = []
    private var longest: [Unicode.Scalar] = []

    mutating func visit(_ node: Node) {
      switch node {
      case .scalar(let value):
        if let scalar = Unicode.Scalar(value) { run.append(scalar) } else { endRun() }
      case .concatenation(let nodes):
        for node in nodes { visit(node) }
      case .repetition(let node, let minimum, let maximum):
        if minimum == 1 && maximum == 1 {
          visit(node)
        } else {
          endRun()
          if minimum > 0 { visit(node) }
          endRun()
        }
      case .assertion:
        break
      case .set, .alternation:
        endRun()
      }
    }

    mutating func finish() -> [Unicode.Scalar] {
      endRun()
      return longest
    }

    private mutating func endRun() {
      if run.count > longest.count { longest = run }
      run.removeAll()
    }
  }
}
