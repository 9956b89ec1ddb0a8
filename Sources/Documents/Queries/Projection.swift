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
      let position = children.firstIndex { $0.name == bytes } ?? children.count
      if position == children.count { children.append(Node(name)) }
      children[position].add(names.dropFirst())
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
  /// - Complexity: O(*n*) in the document, times the number of names on each level.
  func object(of source: DocumentSource) -> [UInt8] {
    var values = [SourceValue?](repeating: nil, count: root.fields.count)
    find(root, in: source.value, &values)
    for child in root.children {
      for (name, value) in [(Document.idName, source.id), (Document.revisionName, source.revision)] {
        guard let value, child.name == Array(name.utf8) else { continue }
        for field in child.fields { values[field] = nil }
        find(child, in: value, &values)
      }
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
    value.forEachMember { name, member in
      for child in node.children where name.withText({ $0.order(child.name.span) == 0 }) {
        // Of equal names, the last one counts.
        for field in child.fields { values[field] = nil }
        find(child, in: member, &values)
      }
    }
    var index = 0
    _ = value.hasElement { element in
      for child in node.children where child.index == index { find(child, in: element, &values) }
      index += 1
      return false
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
