/// Writes a document's text after an update: slices of the source, and new text between them.
///
/// It goes over the update's sites in the order of the source. `cursor` is where the source has been copied to, or left
/// out.
struct UpdateWriter {
  enum Failure: Error {
    /// The text is not a JSON object.
    case document
    case update(DocumentUpdateError)
  }

  /// An object or array whose members or elements are being written.
  private struct Container {
    let site: Int
    var removedCount = 0
  }

  private let tree: UpdateTree
  private let source: JSONText
  private let sites: UpdateSites
  private var output: [UInt8] = []
  private var cursor = 0
  private var containers: [Container] = []

  /// Returns the text that a scanner is at the start of, after an update.
  static func write(
    _ tree: UpdateTree, to scanner: inout JSONScanner, maxDepth: Int
  ) throws(Failure) -> [UInt8] {
    guard scanner.peek() == UInt8(ascii: "{") else { throw .document }
    let sites: UpdateSites
    do throws(JSONScanner.Failure) {
      sites = try UpdateSites(of: tree, in: &scanner, maxDepth: maxDepth)
    } catch { throw .document }
    do throws(DocumentUpdateError) {
      try tree.checkDepth(maxDepth)
      var writer = UpdateWriter(tree, scanner.text, sites)
      return try writer.write()
    } catch { throw .update(error) }
  }

  private init(_ tree: UpdateTree, _ source: JSONText, _ sites: UpdateSites) {
    self.tree = tree
    self.source = source
    self.sites = sites
  }

  private mutating func write() throws(DocumentUpdateError) -> [UInt8] {
    output.reserveCapacity(source.end)
    for number in sites.indices {
      let site = sites[number]
      guard site.parent < 0 || sites.isLive(site.parent) else { continue }
      while let container = containers.last, container.site != site.parent { try close() }
      if sites.isLive(number) {
        try change(number)
      } else {
        // A later member has the same name.
        remove(site)
      }
    }
    while !containers.isEmpty { try close() }
    copy(to: source.end)
    return output
  }

  // MARK: Fields that the document has

  private mutating func change(_ number: Int) throws(DocumentUpdateError) {
    let site = sites[number]
    let (node, first) = (tree[site.node], source[site.value.lowerBound])
    switch (node.action, first) {
    case (.descend, UInt8(ascii: "{")), (.merge, UInt8(ascii: "{")):
      containers.append(Container(site: number))
    case (.descend, UInt8(ascii: "[")):
      try checkIndexes(site.node)
      containers.append(Container(site: number))
    case (.descend, _):
      guard !node.creates else {
        let change = tree.firstChange(in: site.node)
        throw tree.error(.notAContainer, at: change, "\(impossible(change)): \(described(site))")
      }
    case (.merge, _):
      startReplacement(of: site)
      appendNewValue(of: site.node)
    case (.set(let text), _):
      startReplacement(of: site)
      output += text
    case (.remove, _):
      if site.parent >= 0, source[sites[site.parent].value.lowerBound] == UInt8(ascii: "[") {
        startReplacement(of: site)
        output += Array("null".utf8)
      } else {
        remove(site)
      }
    case (.increment(let amount), _): try increment(site, by: amount)
    case (.push(let elements), _): try push(elements, to: site)
    }
  }

  private mutating func increment(_ site: UpdateSites.Site, by amount: JSONNumber) throws(DocumentUpdateError) {
    switch source[site.value.lowerBound] {
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): break
    default: throw tree.error(.notANumber, at: site.node, "\(impossible(site.node)): \(described(site))")
    }
    let sum = unsafe JSONNumber(source.bytes(site.value)).adding(amount)
    guard sum.double.isFinite else {
      throw tree.error(
        .numberTooLarge, at: site.node, "\(impossible(site.node)): the sum is beyond the range of numbers")
    }
    startReplacement(of: site)
    append(sum)
  }

  private mutating func push(_ elements: [UInt8], to site: UpdateSites.Site) throws(DocumentUpdateError) {
    guard source[site.value.lowerBound] == UInt8(ascii: "[") else {
      throw tree.error(.notAnArray, at: site.node, "\(impossible(site.node)): \(described(site))")
    }
    guard !elements.isEmpty else { return }
    var end = site.value.upperBound - 1
    while source[end - 1] <= UInt8(ascii: " ") { end -= 1 }
    copy(to: end)
    if end > site.value.lowerBound + 1 { output.append(UInt8(ascii: ",")) }
    output += elements
  }

  /// Checks that all changes in an array are by index.
  private func checkIndexes(_ node: Int) throws(DocumentUpdateError) {
    let children = tree[node].children
    guard tree[node].childrenByIndex.count < children.count,
      let child = children.first(where: { FieldPath.index(tree[$0].name) == nil })
    else { return }
    let change = tree.firstChange(in: child)
    throw tree.error(
      .notAnIndex, at: change,
      "\(impossible(change)): \(tree.path(of: node)) is an array, whose elements have indexes from 0 on")
  }

  /// Leaves out a member and one comma.
  private mutating func remove(_ site: UpdateSites.Site) {
    let hasMemberBefore = site.position > containers[containers.count - 1].removedCount
    containers[containers.count - 1].removedCount += 1
    if hasMemberBefore {
      copy(to: site.previousEnd)
      cursor = site.value.upperBound
    } else {
      copy(to: site.start)
      cursor = site.nextStart >= 0 ? site.nextStart : site.value.upperBound
    }
  }

  // MARK: Fields that the document doesn't have

  /// Ends an object or array: adds the members or elements that it lacks.
  private mutating func close() throws(DocumentUpdateError) {
    let container = containers.removeLast()
    let site = sites[container.site]
    var count = site.count - container.removedCount
    if source[site.value.lowerBound] == UInt8(ascii: "{") {
      for child in tree[site.node].children where tree[child].creates && !sites.has(child) {
        startAddition(to: site, count)
        appendMember(child)
        count += 1
      }
    } else {
      for (index, child) in tree[site.node].childrenByIndex where tree[child].creates && !sites.has(child) {
        guard index == count else {
          let change = tree.firstChange(in: child)
          throw tree.error(
            .indexTooLarge, at: change,
            "\(impossible(change)): \(tree.path(of: site.node)) has \(count) elements, so \(count) is the next index")
        }
        startAddition(to: site, count)
        appendNewValue(of: child)
        count += 1
      }
    }
  }

  private mutating func appendMember(_ node: Int) {
    JSONString.append(quoting: Array(tree[node].name.utf8).span, to: &output)
    output.append(UInt8(ascii: ":"))
    appendNewValue(of: node)
  }

  /// Appends the value of a field that was missing.
  private mutating func appendNewValue(of node: Int) {
    switch tree[node].action {
    case .set(let text): output += text
    case .increment(let amount): append(amount)
    case .push(let elements):
      output.append(UInt8(ascii: "["))
      output += elements
      output.append(UInt8(ascii: "]"))
    case .descend, .merge:
      output.append(UInt8(ascii: "{"))
      var isFirst = true
      for child in tree[node].children where tree[child].creates {
        if !isFirst { output.append(UInt8(ascii: ",")) }
        appendMember(child)
        isFirst = false
      }
      output.append(UInt8(ascii: "}"))
    case .remove: preconditionFailure("a removed field has no value")
    }
  }

  // MARK: Text

  private mutating func copy(to end: Int) {
    guard cursor < end else { return }
    unsafe output.append(contentsOf: source.bytes(cursor..<end))
    cursor = end
  }

  /// Copies up to a value, and leaves the value out.
  private mutating func startReplacement(of site: UpdateSites.Site) {
    copy(to: site.value.lowerBound)
    cursor = site.value.upperBound
  }

  /// Copies up to the end of an object's or array's content of `count` members or elements.
  private mutating func startAddition(to site: UpdateSites.Site, _ count: Int) {
    copy(to: site.contentEnd)
    if count > 0 { output.append(UInt8(ascii: ",")) }
  }

  private mutating func append(_ number: JSONNumber) {
    switch number {
    case .integer(let value): JSONValue.integer(value).append(to: &output)
    case .double(let value): JSONValue.double(value).append(to: &output)
    }
  }

  // MARK: Messages

  /// The start of a message about a change that can't be made.
  private func impossible(_ node: Int) -> String {
    let verb =
      switch tree[node].action {
      case .remove: "removed"
      case .increment: "incremented"
      case .push: "pushed to"
      case .descend, .merge, .set: "set"
      }
    return "\(tree.path(of: node)) can't be \(verb)"
  }

  /// What is at a site, such as "address is a string".
  private func described(_ site: UpdateSites.Site) -> String {
    let kind =
      switch source[site.value.lowerBound] {
      case UInt8(ascii: "{"): "an object"
      case UInt8(ascii: "["): "an array"
      case UInt8(ascii: "\""): "a string"
      case UInt8(ascii: "t"), UInt8(ascii: "f"): "a Boolean value"
      case UInt8(ascii: "n"): "null"
      default: "a number"
      }
    return "\(tree.path(of: site.node)) is \(kind)"
  }
}

extension JSONNumber {
  /// Adds integers exactly, or gives the nearest double where the sum doesn't fit into 64 bits; adds other numbers as
  /// doubles, unless both are whole and only an integer is equal to the sum.
  fileprivate func adding(_ other: JSONNumber) -> JSONNumber {
    guard case .integer(let left) = self, case .integer(let right) = other else {
      if let left = wholeNumber, let right = other.wholeNumber {
        let sum = Int128(left) + Int128(right)
        return Int128(exactly: Double(sum)) == sum ? .double(Double(sum)) : JSONNumber(sum)
      }
      return .double(double + other.double)
    }
    let (sum, overflows) = left.addingReportingOverflow(right)
    guard overflows else { return .integer(sum) }
    // Beyond 64 bits with a sign, a sum still fits into 64 bits without one, but for -2⁶⁴.
    if left > 0 { return .double(Double(UInt64(bitPattern: sum))) }
    return .double(sum == 0 ? -0x1p64 : -Double(UInt64(bitPattern: 0 &- sum)))
  }
}
