import Documents
import Foundation
import Testing
import TypedQueries

/// The names of fields, found by probing or declared.
@Suite struct FieldTests {
  enum Kind: String, Codable {
    case foo
    case bar = "BAR"
  }
  enum Level: Int, Codable {
    case low = 100
    case high = 2_000
  }
  enum Listed: String, Codable, CaseIterable {
    case first = "1st"
    case second = "2nd"
  }
  enum Shape: Codable, Equatable {
    case circle(radius: Double)
    case square(side: Int)
  }

  struct Place: Codable, Equatable {
    var city: String
    var code: Int?
    var point: Point

    enum CodingKeys: String, CodingKey {
      case city = "town"
      case code, point
    }
  }

  struct Point: Codable, Equatable {
    var x: Double
    var y: Double
  }

  @propertyWrapper struct Clamped: Codable, Equatable {
    private var value: Int
    var wrappedValue: Int {
      get { value }
      set { value = min(newValue, 100) }
    }

    init(wrappedValue: Int) { value = min(wrappedValue, 100) }
    init(from decoder: any Decoder) throws {
      self.init(wrappedValue: try decoder.singleValueContainer().decode(Int.self))
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(value)
    }
  }

  struct Tree: Codable, Equatable {
    var value: Int
    var children: [Tree]
  }

  /// A string of a form.
  struct Code: Codable, Equatable {
    var text: String

    init(_ text: String) { self.text = text }
    init(from decoder: any Decoder) throws {
      text = try decoder.singleValueContainer().decode(String.self)
      guard text.count == 2, text.allSatisfy(\.isLowercase) else {
        throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "no code"))
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(text)
    }
  }

  struct Everything: Codable, Queryable {
    var first: String
    var age: Int { didSet {} }
    let constant: UInt8
    var place: Place
    var other: Place?
    var kind: Kind
    var otherKind: Kind?
    var level: Level
    var listed: Listed
    var shape: Shape
    @Clamped var clamped: Int
    var map: [String: Int]
    var tags: [String]
    var url: URL
    var date: Date
    var data: Data
    var decimal: Decimal
    var float: Float
    var flag: Bool
    var tree: Tree
    var code: Code
    var alias: String { first }
    var upper: String { first.uppercased() }
    var lower: String { first.lowercased() }
    var short: String { String(first.prefix(80)) }
    var trimmed: String { first.trimmingCharacters(in: .whitespacesAndNewlines) }
    var atMost: Int { min(age, 1_000) }
    var distance: Int { abs(age) }
    var isOld: Bool { age > 60 }
    var name: String { "\(first) \(age)" }

    enum CodingKeys: String, CodingKey {
      case first = "first_name"
      case age, constant, place, other, kind, otherKind, level, listed, shape, clamped, map, tags, url, date, data
      case decimal, float, flag, tree, code
    }
  }

  private func json<Root>(_ filter: Filter<Root>) throws -> String { try filter.selector.description }

  /// Returns the error of a filter that can't be lowered.
  private func error<Root>(_ filter: Filter<Root>) -> FilterError? {
    do { _ = try filter.selector } catch { return error as? FilterError }
    return nil
  }

  private func code<Root>(_ filter: Filter<Root>) -> FilterError.Code? { error(filter)?.code }

  @Test func `stored properties have the names of their coding keys`() throws {
    #expect(try json(\Everything.first == "a") == #"{"first_name":"a"}"#)
    #expect(try json(\Everything.age == 1) == #"{"age":1}"#)
    #expect(try json(\Everything.constant == 1) == #"{"constant":1}"#)
    #expect(try json(\Everything.flag == true) == #"{"flag":true}"#)
    #expect(try json(\Everything.float == 0.1) == #"{"float":0.1}"#)
    #expect(try json(\Everything.decimal == 0.1) == #"{"decimal":0.1}"#)
    #expect(try json(\Everything.data == Data([1])) == #"{"data":"AQ=="}"#)
    #expect(try json(\Everything.url == URL(string: "http://a/b")!) == #"{"url":"http://a/b"}"#)
    #expect(try json(\Everything.date < Date(timeIntervalSinceReferenceDate: 1)).contains(#"{"date":{"$lt":1"#))
    #expect(
      try json(\Everything.tags == ["a"])
        == #"{"$and":[{"tags":["a"]},{"$not":{"tags":{"$elemMatch":{"$eq":["a"]}}}}]}"#)
    #expect(try json(\Everything.code == Code("ab")) == #"{"code":"ab"}"#)
    #expect(try json(\Everything.code.text == "ab") == #"{"code":"ab"}"#)
  }

  @Test func `nested types and optionals are paths`() throws {
    #expect(try json(\Everything.place.city == "a") == #"{"place.town":"a"}"#)
    #expect(try json(\Everything.place.code == 1) == #"{"place.code":1}"#)
    #expect(try json(\Everything.place.point.y == 1) == #"{"place.point.y":1.0}"#)
    #expect(try json(\Everything.other?.city == "a") == #"{"other.town":"a"}"#)
    #expect(try json(\Everything.other?.point.x == 1) == #"{"other.point.x":1.0}"#)
    #expect(try json(\Everything.tree.value == 1) == #"{"tree.value":1}"#)
    let whole: Filter<Everything> = \Everything.place == Place(city: "a", code: nil, point: Point(x: 1, y: 2))
    #expect(
      try whole.selector == Selector(parsing: #"{"place":{"$eq":{"town":"a","point":{"x":1,"y":2}}}}"#))
  }

  @Test func `fields of enums compare by their encoded values`() throws {
    #expect(try json(\Everything.kind == .bar) == #"{"kind":"BAR"}"#)
    #expect(try json(\Everything.otherKind == .foo) == #"{"otherKind":"foo"}"#)
    #expect(try json(\Everything.level == .high) == #"{"level":2000}"#)
    #expect(try json(\Everything.listed == .second) == #"{"listed":"2nd"}"#)
    #expect(try json(\Everything.shape == .square(side: 2)) == #"{"shape":{"$eq":{"square":{"side":2}}}}"#)
  }

  @Test func `fields with property wrappers have the values that they encode`() throws {
    #expect(try json(\Everything.clamped == 7) == #"{"clamped":7}"#)
  }

  @Test func `a computed property is a field only if it always is one's value`() throws {
    #expect(try json(\Everything.alias == "a") == #"{"first_name":"a"}"#)
    #expect(code(\Everything.upper == "A") == .unknownField)
    #expect(code(\Everything.lower == "a") == .unknownField)
    #expect(code(\Everything.short == "a") == .unknownField)
    #expect(code(\Everything.trimmed == "a") == .unknownField)
    #expect(code(\Everything.atMost == 1) == .unknownField)
    #expect(code(\Everything.distance == 1) == .unknownField)
    #expect(code(\Everything.isOld == true) == .unknownField)
    #expect(code(\Everything.name == "a 1") == .unknownField)
    #expect(code(\Everything.first.count == 1) == .unknownField)
    #expect(code(\Everything.tags.count == 1) == .unknownField)
  }

  @Test func `a key path that could stop the program is an error`() throws {
    #expect(code(\Everything.tags[70] == "x") == .unknownField)
    #expect(code(\Everything.tags[0] == "x") == .unknownField)
    #expect(code(\Everything.other!.city == "x") == .unknownField)
  }

  @Test func `the error for an unknown key path says what to declare`() throws {
    #expect(
      error(\Everything.upper == "A")?.description
        == "\\Everything.<computed String> is not a known field of Everything: no member of its JSON has the same value; "
        + "if it is one, declare its name in Everything.fields")
  }

  // MARK: Declared names

  struct Strict: Codable, Queryable {
    var code: Code
    var other: Int

    struct Code: Codable, Equatable {
      var text: String

      init(_ text: String) { self.text = text }
      init(from decoder: any Decoder) throws {
        text = try decoder.singleValueContainer().decode(String.self)
        guard text.hasPrefix("XYZZY") else {
          throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "no code"))
        }
      }

      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
      }
    }

    static let fields: FieldNames<Strict> = [\.code: "code", \.code.text: "code"]
  }

  struct Undeclared: Codable, Queryable {
    var code: Strict.Code
  }

  @Test func `types with declared field names aren't probed`() throws {
    #expect(try json(\Strict.code == Strict.Code("a")) == #"{"code":"a"}"#)
    #expect(try json(\Strict.code.text == "a") == #"{"code":"a"}"#)
  }

  @Test func `a type that refuses the probe values is an error that says so`() {
    #expect(code(\Strict.other == 1) == .unprobedType)
    #expect(code(\Undeclared.code.text == "a") == .unprobedType)
    let text = error(\Undeclared.code.text == "a")?.description
    #expect(text?.contains("declare their names in Undeclared.fields") == true)
  }

  @Test func `an optional part that refuses the probe values leaves the other fields known`() throws {
    struct Partial: Codable, Queryable {
      var code: Strict.Code?
      var name: String
    }
    #expect(try json(\Partial.name == "a") == #"{"name":"a"}"#)
    #expect(code(\Partial.code == Strict.Code("a")) == .unknownField)
  }

  @Test func `names follow the strategy of the encoder, and values its formats`() throws {
    struct Event: Codable, Queryable {
      var startDate: Date
      var placeName: String

      static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .iso8601
        return encoder
      }()
      static let decoder: JSONDecoder = {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .iso8601
        return decoder
      }()
    }
    let noon = Date(timeIntervalSince1970: 1_700_000_000)
    #expect(try json(\Event.placeName == "a") == #"{"place_name":"a"}"#)
    #expect(
      try json(\Event.startDate >= noon) == #"{"start_date":{"$gte":"2023-11-14T22:13:20Z","$type":"string"}}"#)
    let events = [Event(startDate: noon, placeName: "x"), Event(startDate: noon - 1, placeName: "y")]
    #expect(try events.fetch(Event.all.where(\Event.startDate >= noon), \.placeName) == ["x"])
    #expect(try events.fetch(Event.all.max(\.startDate)) == noon)
  }

  @Test func `a type that contains itself is probed`() throws {
    final class Node: Codable {
      var value = 1
      var children: [Node] = []
      var next: Node?
    }
    #expect(try json(\Node.value == 3) == #"{"value":3}"#)
    #expect(try json(\Node.next?.value == 3) == #"{"next.value":3}"#)
  }

  @Test func `a value without an order is an error`() {
    struct Version: Codable, Comparable {
      var major: Int
      static func < (left: Version, right: Version) -> Bool { left.major < right.major }
    }
    struct Package: Codable, Queryable { var version: Version }
    #expect(code(\Package.version < Version(major: 2)) == .badValue)
  }
}
