/// The values that the paths of a table lead to in one document.
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
  /// Whether some array on the way to a field may have an element that is an array. False if none has.
  private(set) var mayHaveNestedArrays = false
  /// The text that the values are in, if it isn't the document's own.
  private var copy: UnsafeMutableBufferPointer<UInt8>?

  @unsafe
  private init(_ slots: UnsafeMutableBufferPointer<Slot>) {
    unsafe self.slots = slots
    unsafe slots.initialize(repeating: Slot())
  }

  deinit { unsafe copy?.deallocate() }

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

  /// Returns the first value of a path; nil if there is none.
  @inline(__always)
  borrowing func first(of path: Int) -> SourceValue? { unsafe slots[path].value }

  /// Whether a path leads to several values, or to an array.
  @inline(__always)
  borrowing func isPlural(_ path: Int) -> Bool {
    unsafe slots[path].firstFurther >= 0 || slots[path].value?.isArray ?? false
  }

  /// Calls `body` with each value of a path, or with its elements if it is an array, until the budget is exhausted.
  @inline(__always)
  borrowing func forEachElement(
    of path: Int, _ budget: inout WorkBudget, _ body: (SourceValue, inout WorkBudget) -> Void
  ) {
    _ = hasValue(of: path) { value in !value.forEachElementOrSelf(&budget, body) }
  }

  // MARK: Finding

  /// Finds the values of a table's paths and calls `body` with them.
  ///
  /// Of several members of one name, the last one counts.
  /// - Returns: What `body` returns; nil if the text isn't JSON, or the budget was exhausted before.
  /// - Complexity: O(*n*) in one pass over the text, unless paths lead to elements both by index and by name.
  @inline(__always)
  static func with<Result>(
    of source: DocumentSource, _ table: PathTable, _ budget: inout WorkBudget,
    _ body: (borrowing FieldValues, inout WorkBudget) -> Result
  ) -> Result? {
    guard budget.spend(bytes: source.text.end &+ table.count &* MemoryLayout<Slot>.stride) else { return nil }
    return unsafe withUnsafeTemporaryAllocation(of: Slot.self, capacity: table.count) { slots in
      var values = unsafe FieldValues(slots)
      guard values.find(in: source, table, &budget) else { return nil }
      if values.hasDuplicates {
        // A tree takes some nanoseconds for each byte.
        guard budget.spend(source.text.end / 2) else { return nil }
        values.findLastMembers(in: source, table, &budget)
      }
      return body(values, &budget)
    }
  }

  /// Finds the values again, in a copy of the text without the members that don't count.
  @inline(never)
  private mutating func findLastMembers(
    in source: DocumentSource, _ table: PathTable, _ budget: inout WorkBudget
  ) {
    let text = source.value.tree.encoded()
    let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.count)
    _ = unsafe copy.initialize(fromContentsOf: text)
    unsafe self.copy = copy
    unsafe slots.update(repeating: Slot())
    further = []
    _ = unsafe find(in: source.replacing(UnsafeBufferPointer(copy)), table, &budget)
  }

  /// - Returns: Whether the text is JSON; false if the budget is exhausted, too.
  private mutating func find(in source: DocumentSource, _ table: PathTable, _ budget: inout WorkBudget) -> Bool {
    guard !source.isTrusted else { return find(in: source, TrustedText(source.text), table, &budget) }
    return find(in: source, source.text, table, &budget)
  }

  @inline(__always)
  private mutating func find<Text: TraversableText>(
    in source: DocumentSource, _ text: Text, _ table: PathTable, _ budget: inout WorkBudget
  ) -> Bool {
    if Text.isTrusted, table.node(0).isLeaf, table.node(0).path < 0 { return true }
    var position = 0
    do throws(JSONText.Failure) {
      if text.text.next(&position) == UInt8(ascii: "{"), !table.node(0).isLeaf {
        let idEdge = source.id == nil ? -1 : table.idEdge
        let revisionEdge = source.revision == nil ? -1 : table.revisionEdge
        position = try visitObject(
          text, table, 0, at: position, JSONLimits.deepest, &budget, isRoot: true, except: idEdge, revisionEdge)
        if idEdge >= 0 { try visit(source.id, table, idEdge, &budget) }
        if revisionEdge >= 0 { try visit(source.revision, table, revisionEdge, &budget) }
      } else {
        position = try visit(text, table, 0, at: position, JSONLimits.deepest, &budget)
      }
    } catch { return false }
    if Text.isTrusted { return true }
    _ = text.text.next(&position)
    return position == text.text.end
  }

  /// Visits a value that stands for a member of the root.
  private mutating func visit(
    _ value: SourceValue?, _ table: PathTable, _ edge: Int, _ budget: inout WorkBudget
  ) throws(JSONText.Failure) {
    guard let value else { return }
    _ = try visit(value.text, table, Int(table.edge(edge).target), at: 0, JSONLimits.deepest, &budget)
  }

  /// Passes a value, and notes what the paths of a node lead to in it. The paths start at the value.
  /// - Parameters:
  ///   - start: Where the value begins, or the end of the text.
  ///   - room: How many levels of arrays and objects the value may have.
  /// - Returns: The end of the value.
  private mutating func visit<Text: TraversableText>(
    _ text: Text, _ table: PathTable, _ number: Int, at start: Int, _ room: Int, _ budget: inout WorkBudget
  ) throws(JSONText.Failure) -> Int {
    let node = table.node(number)
    let end: Int
    if node.isLeaf || start == text.text.end || text.text[start] | 0x20 != UInt8(ascii: "{") {
      end = try text.endOfValue(at: start, room: room)
    } else if text.text[start] == UInt8(ascii: "{") {
      end = try visitObject(text, table, number, at: start, room, &budget)
    } else {
      end = try visitArray(text, table, number, at: start, room, &budget)
    }
    if node.path >= 0 { append(SourceValue(start..<end, of: text.text), to: Int(node.path)) }
    return end
  }

  /// - Parameters:
  ///   - isRoot: Whether the object's end does not matter if the text is trusted.
  ///   - isElement: Whether the object is an array's element. Names that are indexes then mean elements of the array.
  ///   - idEdge: An edge to skip, as is `revisionEdge`, because metadata replaces these members.
  private mutating func visitObject<Text: TraversableText>(
    _ traversable: Text, _ table: PathTable, _ number: Int, at start: Int, _ room: Int, _ budget: inout WorkBudget,
    isRoot: Bool = false, isElement: Bool = false, except idEdge: Int = -1, _ revisionEdge: Int = -1
  ) throws(JSONText.Failure) -> Int {
    let text = traversable.text
    guard room > 0 else { throw text.failure(.lessNesting, at: start) }
    let node = table.node(number)
    // One bit for each edge that was found, to notice names that occur twice. From the 64th on, edges share a bit, so
    // that a duplicate may be noticed where there is none, which costs time only.
    var found: UInt64 = 0
    // In trusted text, each name occurs once: nothing is left to look for after these.
    var missingCount = node.edgeCount &- (idEdge >= 0 ? 1 : 0) &- (revisionEdge >= 0 ? 1 : 0)
    let isCompared = table.isCompared(node)
    var position = start &+ 1
    if text.next(&position) == UInt8(ascii: "}") { return position &+ 1 }
    while true {
      if Text.isTrusted, missingCount == 0 { return isRoot ? position : traversable.endOfContainer(from: position) }
      guard text.next(&position) == UInt8(ascii: "\"") else { throw text.failure(.name, at: position) }
      let nameStart = position &+ 1
      var edge = isCompared ? table.comparedEdge(of: node, at: nameStart, in: text) : -1
      if edge >= 0 {
        position = nameStart &+ Int(table.edge(edge).nameCount) &+ 1
      } else {
        let (end, hasEscapes) = try traversable.endOfString(at: position)
        position = end
        if hasEscapes || !isCompared { edge = table.searchedEdge(of: number, nameStart..<end &- 1, in: text) }
      }
      try text.passColon(&position)
      var target = -1
      if edge >= 0, edge != idEdge, edge != revisionEdge, !isElement || table.edge(edge).index < 0 {
        if Text.isTrusted {
          missingCount &-= 1
        } else {
          let bit = UInt64(1) &<< UInt64(truncatingIfNeeded: min(table.edge(edge).ordinal, 63))
          if found & bit != 0 { hasDuplicates = true }
          found |= bit
        }
        target = Int(table.edge(edge).target)
      }
      if target >= 0, !table.node(target).isLeaf {
        position = try visit(traversable, table, target, at: position, room &- 1, &budget)
      } else {
        let start = position
        position = try traversable.endOfValue(at: start, room: room &- 1)
        if target >= 0 { append(SourceValue(start..<position, of: text), to: Int(table.node(target).path)) }
      }
      let byte = text.next(&position)
      if byte == UInt8(ascii: "}") { return position &+ 1 }
      guard byte == UInt8(ascii: ",") else { throw text.failure(.commaOrBrace, at: position) }
      position &+= 1
    }
  }

  /// Paths continue with the element whose index they name, or with every element that is an object.
  private mutating func visitArray<Text: TraversableText>(
    _ traversable: Text, _ table: PathTable, _ number: Int, at start: Int, _ room: Int, _ budget: inout WorkBudget
  ) throws(JSONText.Failure) -> Int {
    let text = traversable.text
    guard room > 0 else { throw text.failure(.lessNesting, at: start) }
    let node = table.node(number)
    var position = start &+ 1
    if text.next(&position) == UInt8(ascii: "]") { return position &+ 1 }
    var index = 0
    while true {
      let first = text.next(&position)
      if first == UInt8(ascii: "[") { mayHaveNestedArrays = true }
      let edge = node.hasIndexes ? table.edge(of: number, index: index) : -1
      var end = -1
      if node.hasNames, table.fansOut, first == UInt8(ascii: "{") {
        end = try visitObject(traversable, table, number, at: position, room &- 1, &budget, isElement: true)
      }
      if edge >= 0 {
        // An object that has been visited is visited once more, for each index on the way to a field.
        if end >= 0, !budget.spend(bytes: end &- position) { throw text.failure(.value, at: position) }
        end = try visit(traversable, table, Int(table.edge(edge).target), at: position, room &- 1, &budget)
      }
      position = end < 0 ? try traversable.endOfValue(at: position, room: room &- 1) : end
      let byte = text.next(&position)
      if byte == UInt8(ascii: "]") { return position &+ 1 }
      guard byte == UInt8(ascii: ",") else { throw text.failure(.commaOrBracket, at: position) }
      position &+= 1
      index += 1
    }
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
