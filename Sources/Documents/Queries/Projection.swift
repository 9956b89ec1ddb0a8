/// The fields of documents that a query returns, as a tree of names. Their values are copied from the text of documents.
struct Projection: Sendable {
  /// A name while the tree is made.
  private struct Branch {
    let name: String
    var branches: [Branch] = []
    /// A field ends here: its value is returned, whatever its branches are.
    var isWhole = false

    init(_ name: String) { self.name = name }

    /// Calls `body` with the names on the way to each field that is returned, in the order of the fields' numbers.
    func visitFields(under names: [String] = [], _ body: ([String]) -> Void) {
      if isWhole { body(names) }
      for branch in branches { branch.visitFields(under: names + [branch.name], body) }
    }

    mutating func add(_ names: ArraySlice<String>, _ positions: inout [[UInt8]: Int], under parent: [UInt8] = []) {
      guard let name = names.first else {
        isWhole = true
        branches = []
        return
      }
      guard !isWhole else { return }
      // No name has a byte such as that which is put between them.
      let place = parent + name.utf8 + [0xFF]
      let position = positions[place] ?? branches.count
      if position == branches.count {
        branches.append(Branch(name))
        positions[place] = position
      }
      branches[position].add(names.dropFirst(), &positions, under: place)
    }
  }

  /// A part of the objects that are returned: a member whose value is that of a field, the beginning of one whose value is
  /// an object, or the end of such a member.
  private struct Step {
    /// Where the member's name is, with the colon behind it.
    let name: Range<Int>
    /// The fields in it; at least one of them is there, or the member is omitted.
    let fields: Range<Int>
    /// The number of the step behind the member.
    var end: Int
    var isEnd: Bool { fields.isEmpty }
  }

  /// A class with constants, so that passing through a document makes no copies.
  private final class Node: Sendable {
    let name: [UInt8]
    /// The name as a JSON string, with the colon behind it.
    let quotedName: [UInt8]
    let index: Int?
    let children: [Node]
    let isWhole: Bool
    /// The numbers of the fields that end here or below.
    let fields: Range<Int>
    /// Where the children are by their names and by their indexes, if there are too many to search one by one.
    private let positions: [[UInt8]: Int]
    private let indexPositions: [Int: Int]

    /// Up to how many children are searched one by one.
    private static let maxSearched = 8

    /// - Parameter firstField: The number of the first field that ends here or below.
    init(_ branch: Branch, firstField: Int) {
      let bytes = Array(branch.name.utf8)
      var quotedName: [UInt8] = []
      JSONString.append(quoting: bytes.span, to: &quotedName)
      var (children, next) = ([Node](), firstField + (branch.isWhole ? 1 : 0))
      for branch in branch.branches {
        let child = Node(branch, firstField: next)
        next = child.fields.upperBound
        children.append(child)
      }
      name = bytes
      self.quotedName = quotedName + [UInt8(ascii: ":")]
      index = FieldPath.index(branch.name)
      self.children = children
      isWhole = branch.isWhole
      fields = firstField..<next
      var (positions, indexPositions) = ([[UInt8]: Int](), [Int: Int]())
      if children.count > Self.maxSearched {
        for (position, child) in children.enumerated() {
          positions[child.name] = position
          if let index = child.index { indexPositions[index] = position }
        }
      }
      (self.positions, self.indexPositions) = (positions, indexPositions)
    }

    /// Returns the position of the child with a name; nil if there is none.
    func position(ofName name: Span<UInt8>) -> Int? {
      guard positions.isEmpty else { return positions[unsafe name.withUnsafeBufferPointer { unsafe Array($0) }] }
      for index in children.indices where children[index].hasName(name) { return index }
      return nil
    }

    private func hasName(_ name: Span<UInt8>) -> Bool {
      let own = self.name
      return own.count == name.count && own.span.order(name) == 0
    }

    /// Returns the position of the child that stands for the element at an index; nil if there is none.
    func position(ofIndex index: Int) -> Int? {
      positions.isEmpty ? children.firstIndex { $0.index == index } : indexPositions[index]
    }
  }

  private let root: Node
  /// The paths of the fields, in their order.
  private let paths: PathTable.Storage
  /// How an object is written, between its braces.
  private let steps: [Step]
  /// The names of all members, one after the other.
  private let names: [UInt8]
  /// Whether it matters which `_id` and which `_rev` a document has.
  let needsID: Bool
  let needsRevision: Bool

  init(_ fields: [FieldPath]) {
    var branch = Branch("")
    var positions: [[UInt8]: Int] = [:]
    for field in fields { branch.add(field.names[...], &positions) }
    root = Node(branch, firstField: 0)
    var trie = PathTrie()
    branch.visitFields { _ = trie.add(FieldPath(names: $0)) }
    paths = PathTable.storage(of: trie)
    var (steps, names) = ([Step](), [UInt8]())
    for child in root.children { Self.appendSteps(of: child, to: &steps, &names) }
    (self.steps, self.names) = (steps, names)
    needsID = root.position(ofName: Array(Document.idName.utf8).span) != nil
    needsRevision = root.position(ofName: Array(Document.revisionName.utf8).span) != nil
  }

  private static func appendSteps(of node: Node, to steps: inout [Step], _ names: inout [UInt8]) {
    let (position, nameStart) = (steps.count, names.count)
    names += node.quotedName
    steps.append(Step(name: nameStart..<names.count, fields: node.fields, end: position + 1))
    guard !node.isWhole else { return }
    for child in node.children { appendSteps(of: child, to: &steps, &names) }
    steps.append(Step(name: 0..<0, fields: 0..<0, end: steps.count + 1))
    steps[position].end = steps.count
  }

  /// Returns an object with the fields that a document has, in the order of the projection. Missing ones are omitted.
  /// - Complexity: O(*n*) in the document.
  func object(of source: DocumentSource) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(Self.outputCapacity)
    guard !source.isTrusted else {
      var budget = WorkBudget()
      _ = FieldValues.with(of: source, paths.tableOfIndexes, &budget) { values, _ in
        write(to: &output) { values.first(of: $0) }
      }
      return output
    }
    var values = [SourceValue?](repeating: nil, count: root.fields.count)
    _ = find(root, in: source.text, at: 0, &values)
    if needsID, let id = source.id { replace(Document.idName, id, &values) }
    if needsRevision, let revision = source.revision { replace(Document.revisionName, revision, &values) }
    write(to: &output) { values[$0] }
    return output
  }

  /// Replaces the values of the fields at and below a member of the root.
  private func replace(_ name: String, _ value: SourceValue, _ values: inout [SourceValue?]) {
    guard let position = root.position(ofName: Array(name.utf8).span) else { return }
    for field in root.children[position].fields { values[field] = nil }
    _ = find(root.children[position], in: value.text, at: 0, &values)
  }

  /// The size of most objects, in bytes, at most.
  private static let outputCapacity = 128

  /// Notes the values of a node's fields in a value that has been passed before.
  /// - Returns: The end of the value.
  private func find(
    _ node: Node, in text: JSONText, at start: Int, _ values: inout [SourceValue?]
  ) -> Int {
    do throws(JSONText.Failure) { return try pass(node, in: text, at: start, &values) } catch {
      preconditionFailure("the text has been passed before")
    }
  }

  private func pass(
    _ node: Node, in text: JSONText, at first: Int, _ values: inout [SourceValue?]
  ) throws(JSONText.Failure) -> Int {
    var start = first
    let byte = text.next(&start)
    if node.isWhole {
      let end = try text.endOfValue(at: start, room: JSONLimits.deepest)
      values[node.fields.lowerBound] = SourceValue(start..<end, of: text)
      return end
    }
    // Of equal names, the last one counts.
    for field in node.fields { values[field] = nil }
    if byte == UInt8(ascii: "{") { return try passObject(node, in: text, at: start, &values) }
    if byte == UInt8(ascii: "[") { return try passArray(node, in: text, at: start, &values) }
    return try text.endOfValue(at: start, room: JSONLimits.deepest)
  }

  private func passObject(
    _ node: Node, in text: JSONText, at start: Int, _ values: inout [SourceValue?]
  ) throws(JSONText.Failure) -> Int {
    var position = start &+ 1
    if text.next(&position) == UInt8(ascii: "}") { return position &+ 1 }
    while true {
      _ = text.next(&position)
      let nameStart = position
      let (nameEnd, hasEscapes) = try text.endOfString(at: nameStart)
      position = nameEnd
      try text.passColon(&position)
      let child =
        hasEscapes
        ? SourceValue(nameStart..<nameEnd, of: text).withText { node.position(ofName: $0) }
        : unsafe node.position(ofName: text.bytes(nameStart &+ 1..<nameEnd &- 1).span)
      if let child {
        position = try pass(node.children[child], in: text, at: position, &values)
      } else {
        position = try text.endOfValue(at: position, room: JSONLimits.deepest)
      }
      guard text.next(&position) == UInt8(ascii: ",") else { return position &+ 1 }
      position &+= 1
    }
  }

  private func passArray(
    _ node: Node, in text: JSONText, at start: Int, _ values: inout [SourceValue?]
  ) throws(JSONText.Failure) -> Int {
    var position = start &+ 1
    if text.next(&position) == UInt8(ascii: "]") { return position &+ 1 }
    var index = 0
    while true {
      _ = text.next(&position)
      if let child = node.position(ofIndex: index) {
        position = try pass(node.children[child], in: text, at: position, &values)
      } else {
        position = try text.endOfValue(at: position, room: JSONLimits.deepest)
      }
      index += 1
      guard text.next(&position) == UInt8(ascii: ",") else { return position &+ 1 }
      position &+= 1
    }
  }

  /// - Parameter value: Returns the value of a field; nil if it is missing.
  private func write(to output: inout [UInt8], _ value: (Int) -> SourceValue?) {
    let (steps, names) = (steps, names)
    output.append(UInt8(ascii: "{"))
    var position = 0
    while position < steps.count {
      let step = steps[position]
      position += 1
      guard !step.isEnd else {
        output.append(UInt8(ascii: "}"))
        continue
      }
      let isField = step.fields.count == 1 && step.end == position
      let found = isField ? value(step.fields.lowerBound) : nil
      guard isField ? found != nil : step.fields.contains(where: { value($0) != nil }) else {
        position = step.end
        continue
      }
      if output.last != UInt8(ascii: "{") { output.append(UInt8(ascii: ",")) }
      unsafe names.withUnsafeBufferPointer {
        unsafe output.append(contentsOf: UnsafeBufferPointer(rebasing: $0[step.name]))
      }
      if let found { unsafe output.append(contentsOf: found.bytes) } else { output.append(UInt8(ascii: "{")) }
    }
    output.append(UInt8(ascii: "}"))
  }
}
