/// The members of a JSON object, in their order. Names differ if their Unicode scalars do: two spellings of "é" are two
/// names.
///
/// Two objects are equal if they have the same members, in any order.
public struct JSONObject: Sendable {
  /// A member.
  public typealias Element = (name: String, value: JSONValue)

  private var members: [Element] = []
  /// Where each name is, in objects that are too large to search one by one; otherwise empty.
  private var positions: [Name: Int] = [:]
  private static let maxSearched = 16

  private struct Name: Hashable, Sendable {
    let text: String

    static func == (left: Name, right: Name) -> Bool { left.text.hasSameScalars(as: right.text) }

    func hash(into hasher: inout Hasher) {
      var text = text
      text.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
  }

  /// Creates an object without members.
  public init() {}

  /// The value of the member with a name; nil if there is no such member.
  ///
  /// Setting it replaces the value, or appends a member if the name is new. Setting it to nil removes the member.
  /// - Complexity: O(1) on average, but O(*n*) to remove a member.
  public subscript(name: String) -> JSONValue? {
    get { position(of: name).map { members[$0].value } }
    set {
      switch (position(of: name), newValue) {
      case (let position?, let value?): members[position].value = value
      case (nil, let value?): append(name, value)
      case (let position?, nil):
        members.remove(at: position)
        reindex()
      case (nil, nil): break
      }
    }
  }

  private func position(of name: String) -> Int? {
    if members.count > Self.maxSearched { return positions[Name(text: name)] }
    return members.firstIndex { $0.name.hasSameScalars(as: name) }
  }

  private mutating func append(_ name: String, _ value: JSONValue) {
    members.append((name, value))
    if members.count == Self.maxSearched + 1 {
      reindex()
    } else if members.count > Self.maxSearched {
      positions[Name(text: name)] = members.count - 1
    }
  }

  private mutating func reindex() {
    positions.removeAll()
    guard members.count > Self.maxSearched else { return }
    for (position, member) in members.enumerated() { positions[Name(text: member.name)] = position }
  }

  /// The members in the order of their names' Unicode scalars.
  var sorted: [Element] { members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) } }
}

extension JSONObject: RandomAccessCollection {
  /// The position of the first member.
  public var startIndex: Int { 0 }
  /// The position behind the last member.
  public var endIndex: Int { members.count }

  /// The member at a position.
  /// - Precondition: The position is from 0 to less than `count`.
  public subscript(position: Int) -> Element { members[position] }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
  /// Creates an object. If names are equal, the last one counts.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    for (name, value) in elements { self[name] = value }
  }
}

extension JSONObject: Equatable {
  /// Objects are equal if they have the same members, in any order.
  /// - Complexity: O(*n*) on average.
  public static func == (left: JSONObject, right: JSONObject) -> Bool {
    left.count == right.count && left.members.allSatisfy { right[$0.name] == $0.value }
  }
}

extension String {
  /// Returns whether the texts have the same Unicode scalars. Swift's `==` also accepts canonically equivalent ones.
  func hasSameScalars(as other: String) -> Bool {
    utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
  }
}
