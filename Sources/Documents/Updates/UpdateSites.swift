/// Where the fields of an update are in a document's text, found in one pass that also checks the text.
///
/// A site is a place of one field. A field has several if members have the same name; the last one counts, and is live
/// if its parent is.
struct UpdateSites {
  struct Site {
    let node: Int
    /// The site of the object or array that it is in; -1 for the document.
    let parent: Int
    /// How many members or elements are before it.
    let position: Int
    /// Where it starts: at its name in an object.
    let start: Int
    /// Where the member or element before it ends; -1 if it is the first.
    let previousEnd: Int
    /// Where the next member or element starts; -1 if it is the last.
    fileprivate(set) var nextStart = -1
    fileprivate(set) var value: Range<Int>
    /// How many members or elements it has, if fields are looked for in it.
    fileprivate(set) var count = 0
    /// Where its last member or element ends, or else its opening bracket, if fields are looked for in it.
    fileprivate(set) var contentEnd: Int
  }

  /// An object or array that the pass is in.
  private struct Frame {
    let site: Int
    let isObject: Bool
    var position = 0
    var previousEnd = -1
    /// The site of the member or element before; -1 if it isn't a site.
    var previousSite = -1
    /// How many of the node's children by index have been passed.
    var passedIndexes = 0
  }

  private let tree: UpdateTree
  private var sites: [Site] = []
  /// Each node's last site; -1 if there is none.
  private var last: [Int]
  private var live: [Bool] = []
  private var frames: [Frame] = []
  private var name: [UInt8] = []

  var indices: Range<Int> { sites.indices }
  subscript(site: Int) -> Site { sites[site] }

  func isLive(_ site: Int) -> Bool { live[site] }

  /// A Boolean value that indicates whether the document has a node's field.
  func has(_ node: Int) -> Bool { last[node] >= 0 && live[last[node]] }

  /// Passes a document, which starts with `{`.
  init(of tree: UpdateTree, in scanner: inout JSONScanner, maxDepth: Int) throws(JSONScanner.Failure) {
    self.tree = tree
    last = Array(repeating: -1, count: tree.count)
    try find(in: &scanner, maxDepth)
    try scanner.expectEnd()
    live.reserveCapacity(sites.count)
    for (index, site) in sites.enumerated() {
      live.append(last[site.node] == index && (site.parent < 0 || live[site.parent]))
    }
  }

  private mutating func find(in scanner: inout JSONScanner, _ maxDepth: Int) throws(JSONScanner.Failure) {
    _ = scanner.peek()
    addSite(0, start: scanner.position, scanner)
    if tree[0].children.isEmpty { sites[0].value = try scanner.skipValue() } else { try enter(&scanner, maxDepth) }
    while let frame = frames.last {
      let top = frames.count - 1
      _ = scanner.peek()
      let start = scanner.position
      if frame.previousSite >= 0 { sites[frame.previousSite].nextStart = start }
      frames[top].previousSite = -1
      if let node = frame.isObject ? try member(&scanner, frame) : element(frame) {
        guard let first = scanner.peek() else { throw scanner.failure(.value) }
        addSite(node, start: start, scanner)
        frames[top].previousSite = sites.count - 1
        if isEntered(node, first) {
          try enter(&scanner, maxDepth)
          if frames.count > top + 1 { continue }
        } else {
          sites[sites.count - 1].value = try scanner.skipValue(depth: frames.count)
        }
      } else {
        _ = try scanner.skipValue(depth: frames.count)
      }
      try leave(&scanner)
    }
  }

  private mutating func addSite(_ node: Int, start: Int, _ scanner: JSONScanner) {
    let frame = frames.last
    sites.append(
      Site(
        node: node, parent: frame?.site ?? -1, position: frame?.position ?? 0, start: start,
        previousEnd: frame?.previousEnd ?? -1, value: scanner.position..<scanner.position,
        contentEnd: scanner.position + 1))
    last[node] = sites.count - 1
  }

  /// A Boolean value that indicates whether fields are looked for in a value that starts with a byte.
  private func isEntered(_ node: Int, _ first: UInt8) -> Bool {
    switch tree[node].action {
    case .descend: first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    case .merge: first == UInt8(ascii: "{")
    case .set, .remove, .increment, .push: false
    }
  }

  /// Passes the opening bracket of the last site's value, or all of the value if it is empty.
  private mutating func enter(_ scanner: inout JSONScanner, _ maxDepth: Int) throws(JSONScanner.Failure) {
    guard frames.count < maxDepth else { throw scanner.failure(.lessNesting) }
    let (site, start) = (sites.count - 1, scanner.position)
    let first = scanner.text[start]
    scanner.move(to: start + 1)
    // The closing bracket is 2 after the opening one, for both kinds.
    if scanner.take(first + 2) {
      sites[site].value = start..<scanner.position
    } else {
      frames.append(Frame(site: site, isObject: first == UInt8(ascii: "{")))
    }
  }

  /// Ends a member or element, and the objects and arrays that end with it; passes the comma to the next one.
  private mutating func leave(_ scanner: inout JSONScanner) throws(JSONScanner.Failure) {
    while let frame = frames.last {
      let end = scanner.position
      frames[frames.count - 1].position += 1
      frames[frames.count - 1].previousEnd = end
      if scanner.take(UInt8(ascii: ",")) { return }
      guard scanner.take(frame.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
        throw scanner.failure(frame.isObject ? .commaOrBrace : .commaOrBracket)
      }
      frames.removeLast()
      sites[frame.site].value = sites[frame.site].value.lowerBound..<scanner.position
      sites[frame.site].count = frame.position + 1
      sites[frame.site].contentEnd = end
    }
  }

  /// Passes a member's name, and returns the node that it leads to.
  private mutating func member(_ scanner: inout JSONScanner, _ frame: Frame) throws(JSONScanner.Failure) -> Int? {
    let (range, hasEscapes) = try scanner.takeName()
    let parent = sites[frame.site].node
    guard hasEscapes else { return unsafe tree.child(of: parent, named: scanner.text.bytes(range)) }
    name.removeAll(keepingCapacity: true)
    JSONString.append(range, of: scanner.text, to: &name)
    return unsafe name.withUnsafeBufferPointer { unsafe tree.child(of: parent, named: $0) }
  }

  /// The node that the next element's index leads to.
  private mutating func element(_ frame: Frame) -> Int? {
    let children = tree[sites[frame.site].node].childrenByIndex
    guard frame.passedIndexes < children.count, children[frame.passedIndexes].index == frame.position else {
      return nil
    }
    frames[frames.count - 1].passedIndexes += 1
    return children[frame.passedIndexes].node
  }
}
