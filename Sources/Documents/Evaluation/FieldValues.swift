/// The values that the paths of a trie lead to in one document.
///
/// The first value of each path is in memory on the caller's stack; further values, which only arrays of objects have,
/// are in an array. Finding values allocates nothing unless there are further values or more than 40 paths.
///
/// Safe because values exist only inside of `with(of:_:_:)`, while the text and the slots are borrowed.
@safe
struct FieldValues: ~Copyable {
  private struct Slot {
    var value: SourceValue?
    /// The first and last of the path's further values; -1 if there are none.
    var firstFurther: Int32 = -1
    var lastFurther: Int32 = -1
  }

  private struct Further {
    let value: SourceValue
    var next: Int32 = -1
  }

  private let slots: UnsafeMutableBufferPointer<Slot>
  private var further: [Further] = []
  /// Whether some object has several members of a name that matters.
  private var hasDuplicates = false

  @unsafe
  private init(_ slots: UnsafeMutableBufferPointer<Slot>) {
    unsafe self.slots = slots
    unsafe slots.initialize(repeating: Slot())
  }

  // MARK: Reading

  /// Returns whether `body` returns true for some value of a path.
  @inline(__always)
  borrowing func hasValue(of path: Int, where body: (SourceValue) -> Bool) -> Bool {
    guard let first = unsafe slots[path].value else { return false }
    if body(first) { return true }
    var position = unsafe slots[path].firstFurther
    while position >= 0 {
      if body(further[Int(position)].value) { return true }
      position = further[Int(position)].next
    }
    return false
  }

  /// Returns whether a path leads to no value.
  @inline(__always)
  borrowing func isEmpty(_ path: Int) -> Bool { unsafe slots[path].value == nil }

  /// Calls `body` with each value of a path, or with its elements if it is an array.
  @inline(__always)
  borrowing func forEachElement(of path: Int, _ body: (SourceValue) -> Void) {
    _ = hasValue(of: path) { value in
      value.forEachElementOrSelf(body)
      return false
    }
  }

  // MARK: Finding

  /// Finds the values of a trie's paths and calls `body` with them.
  ///
  /// Of several members of one name, the last one counts.
  /// - Returns: What `body` returns; nil if the text isn't JSON.
  /// - Complexity: O(*n*) in one pass over the text.
  static func with<Result>(
    of source: DocumentSource, _ trie: borrowing PathTrie, _ body: (borrowing FieldValues) -> Result
  ) -> Result? {
    unsafe withUnsafeTemporaryAllocation(of: Slot.self, capacity: trie.count) { slots in
      var values = unsafe FieldValues(slots)
      guard values.find(in: source, trie) else { return nil }
      guard !values.hasDuplicates else { return withLastMembers(of: source, trie, body) }
      return body(values)
    }
  }

  /// Finds the values in a copy of the text without the members that don't count.
  @inline(never)
  private static func withLastMembers<Result>(
    of source: DocumentSource, _ trie: borrowing PathTrie, _ body: (borrowing FieldValues) -> Result
  ) -> Result? {
    let text = source.tree.encoded()
    return unsafe text.withUnsafeBufferPointer { bytes in
      unsafe with(of: source.replacing(bytes), trie, body)
    }
  }

  /// - Returns: Whether the text is JSON.
  @inline(__always)
  private mutating func find(in source: DocumentSource, _ trie: borrowing PathTrie) -> Bool {
    var scanner = source.scanner
    do throws(JSONScanner.Failure) {
      if source.hasMetadata, scanner.peek() == UInt8(ascii: "{") {
        try visitObject(
          &scanner, trie, 0, 0, except: source.id.flatMap { _ in trie.idEdge },
          source.revision.flatMap { _ in trie.revisionEdge })
        try visit(source.id, trie, trie.idEdge)
        try visit(source.revision, trie, trie.revisionEdge)
      } else {
        try visit(&scanner, trie, 0, 0)
      }
      try scanner.expectEnd()
    } catch { return false }
    return true
  }

  /// Visits a value that stands for a member of the root.
  private mutating func visit(
    _ value: SourceValue?, _ trie: borrowing PathTrie, _ edge: Int?
  ) throws(JSONScanner.Failure) {
    guard let edge, var scanner = value?.scanner else { return }
    try visit(&scanner, trie, trie.edge(edge).target, 1)
  }

  /// Passes a value, and notes what the paths of a node lead to in it. The paths start at the value.
  /// - Parameter depth: The number of arrays and objects around the value.
  private mutating func visit(
    _ scanner: inout JSONScanner, _ trie: borrowing PathTrie, _ node: Int, _ depth: Int
  ) throws(JSONScanner.Failure) {
    guard let first = scanner.peek() else { throw scanner.failure(.value) }
    let start = scanner.position
    if trie.node(node).isLeaf || first != UInt8(ascii: "{") && first != UInt8(ascii: "[") {
      _ = try scanner.skipValue(depth: depth)
    } else if first == UInt8(ascii: "{") {
      try visitObject(&scanner, trie, node, depth)
    } else {
      try visitArray(&scanner, trie, node, depth)
    }
    let path = trie.node(node).path
    if path >= 0 { append(SourceValue(start..<scanner.position, of: scanner), to: path) }
  }

  /// - Parameters:
  ///   - isElement: Whether the object is an array's element. Names that are indexes then mean elements of the array.
  ///   - idEdge: An edge to skip, as is `revisionEdge`, because metadata replaces these members.
  private mutating func visitObject(
    _ scanner: inout JSONScanner, _ trie: borrowing PathTrie, _ node: Int, _ depth: Int, isElement: Bool = false,
    except idEdge: Int? = nil, _ revisionEdge: Int? = nil
  ) throws(JSONScanner.Failure) {
    guard depth < JSONLimits.deepest else { throw scanner.failure(.lessNesting) }
    // One bit for each edge that was found, to notice names that occur twice. From the 64th on, edges share a bit, so
    // that a duplicate may be noticed where there is none, which costs time only.
    var found: UInt64 = 0
    scanner.move(to: scanner.position + 1)
    if scanner.take(UInt8(ascii: "}")) { return }
    repeat {
      let (name, hasEscapes) = try scanner.takeName()
      guard let edge = trie.edge(of: node, name, hasEscapes: hasEscapes, in: scanner), edge != idEdge,
        edge != revisionEdge, !isElement || trie.edge(edge).index < 0
      else {
        _ = try scanner.skipValue(depth: depth + 1)
        continue
      }
      let bit = UInt64(1) << UInt64(min(trie.edge(edge).ordinal, 63))
      if found & bit != 0 { hasDuplicates = true }
      found |= bit
      try visit(&scanner, trie, trie.edge(edge).target, depth + 1)
    } while scanner.take(UInt8(ascii: ","))
    guard scanner.take(UInt8(ascii: "}")) else { throw scanner.failure(.commaOrBrace) }
  }

  /// Paths continue with the element whose index they name, or with every element that is an object.
  private mutating func visitArray(
    _ scanner: inout JSONScanner, _ trie: borrowing PathTrie, _ node: Int, _ depth: Int
  ) throws(JSONScanner.Failure) {
    guard depth < JSONLimits.deepest else { throw scanner.failure(.lessNesting) }
    scanner.move(to: scanner.position + 1)
    if scanner.take(UInt8(ascii: "]")) { return }
    var index = 0
    repeat {
      guard let first = scanner.peek() else { throw scanner.failure(.value) }
      let start = scanner.position
      var isPassed = false
      if trie.node(node).hasNames, first == UInt8(ascii: "{") {
        try visitObject(&scanner, trie, node, depth + 1, isElement: true)
        isPassed = true
      }
      if trie.node(node).hasIndexes, let edge = trie.edge(of: node, index: index) {
        scanner.move(to: start)
        try visit(&scanner, trie, trie.edge(edge).target, depth + 1)
        isPassed = true
      }
      if !isPassed { _ = try scanner.skipValue(depth: depth + 1) }
      index += 1
    } while scanner.take(UInt8(ascii: ","))
    guard scanner.take(UInt8(ascii: "]")) else { throw scanner.failure(.commaOrBracket) }
  }

  @inline(__always)
  private mutating func append(_ value: SourceValue, to path: Int) {
    guard unsafe slots[path].value != nil else {
      unsafe slots[path].value = value
      return
    }
    let position = Int32(further.count)
    further.append(Further(value: value))
    if unsafe slots[path].firstFurther < 0 {
      unsafe slots[path].firstFurther = position
    } else {
      unsafe further[Int(slots[path].lastFurther)].next = position
    }
    unsafe slots[path].lastFurther = position
  }
}

/// What paths are looked up in: the text of a value, and the metadata of a document.
///
/// Safe because it doesn't leave the scope in which the text is borrowed.
@safe
struct DocumentSource {
  private let text: UnsafeBufferPointer<UInt8>
  /// The key as a JSON string, and the revision as a number, in place of the members `_id` and `_rev`.
  let id: SourceValue?
  let revision: SourceValue?

  @unsafe
  init(_ text: UnsafeBufferPointer<UInt8>, id: SourceValue? = nil, revision: SourceValue? = nil) {
    unsafe self.text = text
    self.id = id
    self.revision = revision
  }

  /// - Parameter metadata: The key, of `idCount` bytes, and the revision. Both can be empty.
  @unsafe @inline(__always)
  init(_ text: UnsafeBufferPointer<UInt8>, metadata: UnsafeBufferPointer<UInt8>, idCount: Int) {
    unsafe self.text = text
    id = unsafe idCount == 0 ? nil : SourceValue(UnsafeBufferPointer(rebasing: metadata[..<idCount]))
    revision = unsafe idCount == metadata.count ? nil : SourceValue(UnsafeBufferPointer(rebasing: metadata[idCount...]))
  }

  init(_ value: SourceValue) { unsafe self.init(value.bytes) }

  var hasMetadata: Bool { id != nil || revision != nil }

  /// Whether the text starts like an object.
  @inline(__always)
  var isObject: Bool {
    var scanner = scanner
    return scanner.peek() == UInt8(ascii: "{")
  }

  var scanner: JSONScanner { unsafe JSONScanner(UnsafeRawBufferPointer(text)) }

  /// Returns the same metadata with another text.
  @unsafe
  func replacing(_ text: UnsafeBufferPointer<UInt8>) -> DocumentSource {
    unsafe DocumentSource(text, id: id, revision: revision)
  }

  /// The value as a tree.
  /// - Precondition: The text is JSON.
  var tree: JSONValue {
    var scanner = scanner
    do throws(JSONScanner.Failure) {
      return try JSONValue.parse(&scanner, depth: 0, maxDepth: JSONLimits.deepest)
    } catch { preconditionFailure("the text was scanned before") }
  }
}
