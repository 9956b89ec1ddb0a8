/// The fields of documents that a query returns, as a tree of names. Their values are copied from the text of documents.
struct Projection: Sendable {
  private struct Node {
    let name: [UInt8]
    let index: Int?
    var children: [Node] = []
    /// A field ends here: its value is returned, whatever its children are.
    var isWhole = false
    /// The numbers of the fields that end here or below.
    var fields = 0..<0
    /// Where the children are by their names and by their indexes, if there are too many to search one by one.
    private var positions: [[UInt8]: Int] = [:]
    private var indexPositions: [Int: Int] = [:]

    /// Up to how many children are searched one by one.
    private static let maxSearched = 8

    init(_ name: String) {
      self.name = Array(name.utf8)
      index = FieldPath.index(name)
    }

    mutating func add(_ names: ArraySlice<String>) {
      guard let name = names.first else {
        isWhole = true
        children = []
        return
      }
      guard !isWhole else { return }
      let bytes = Array(name.utf8)
      let position = self.position(ofName: bytes.span) ?? children.count
      if position == children.count { append(Node(name)) }
      children[position].add(names.dropFirst())
    }

    private mutating func append(_ child: Node) {
      children.append(child)
      guard children.count > Self.maxSearched else { return }
      for (position, child) in children.enumerated().dropFirst(positions.count) {
        positions[child.name] = position
        if let index = child.index { indexPositions[index] = position }
      }
    }

    /// Returns the position of the child with a name; nil if there is none.
    func position(ofName name: Span<UInt8>) -> Int? {
      guard positions.isEmpty else { return positions[unsafe name.withUnsafeBufferPointer { unsafe Array($0) }] }
      return children.firstIndex { $0.name.span.order(name) == 0 }
    }

    /// Returns the position of the child that stands for the element at an index; nil if there is none.
    func position(ofIndex index: Int) -> Int? {
      positions.isEmpty ? children.firstIndex { $0.index == index } : indexPositions[index]
    }

    /// Numbers the fields. Returns the first free number.
    mutating func number(from start: Int) -> Int {
      var next = start
      if isWhole { next += 1 }
      for index in children.indices { next = children[index].number(from: next) }
      fields = start..<next
      return next
    }
  }

  private var root = Node("")

  init(_ fields: [FieldPath]) {
    for field in fields { root.add(field.names[...]) }
    _ = root.number(from: 0)
  }

  /// Returns an object with the fields that a document has, in the order of the projection. Missing ones are omitted.
  /// - Complexity: O(*n*) in the document.
  func object(of source: DocumentSource) -> [UInt8] {
    var values = [SourceValue?](repeating: nil, count: root.fields.count)
    find(root, in: source.value, &values)
    for (name, value) in [(Document.idName, source.id), (Document.revisionName, source.revision)] {
      guard let value, let position = root.position(ofName: Array(name.utf8).span) else { continue }
      for field in root.children[position].fields { values[field] = nil }
      find(root.children[position], in: value, &values)
    }
    var output: [UInt8] = []
    write(root, values, to: &output)
    return output
  }

  private func find(_ node: Node, in value: SourceValue, _ values: inout [SourceValue?]) {
    if node.isWhole {
      values[node.fields.lowerBound] = value
      return
    }
    var found = [SourceValue?](repeating: nil, count: node.children.count)
    value.forEachMember { name, member in
      // Of equal names, the last one counts.
      if let position = name.withText({ node.position(ofName: $0) }) { found[position] = member }
    }
    var index = 0
    _ = value.hasElement { element in
      if let position = node.position(ofIndex: index) { found[position] = element }
      index += 1
      return false
    }
    for (position, value) in found.enumerated() {
      if let value { find(node.children[position], in: value, &values) }
    }
  }

  private func write(_ node: Node, _ values: [SourceValue?], to output: inout [UInt8]) {
    if node.isWhole {
      if let value = values[node.fields.lowerBound] { unsafe output.append(contentsOf: value.bytes) }
      return
    }
    output.append(UInt8(ascii: "{"))
    var isFirst = true
    for child in node.children where child.fields.contains(where: { values[$0] != nil }) {
      if !isFirst { output.append(UInt8(ascii: ",")) }
      isFirst = false
      JSONString.append(quoting: child.name.span, to: &output)
      output.append(UInt8(ascii: ":"))
      write(child, values, to: &output)
    }
    output.append(UInt8(ascii: "}"))
  }
}
