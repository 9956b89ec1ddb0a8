import Documents
import Foundation
import Testing
import TypedQueries

/// Types that probing must decode, and key paths that it must not follow.
@Suite struct ProbingTests {
  private func json<Root>(_ filter: Filter<Root>) throws -> String { try filter.selector.description }

  private func code<Root>(_ filter: Filter<Root>) -> FilterError.Code? {
    do { _ = try filter.selector } catch { return (error as? FilterError)?.code }
    return nil
  }

  // MARK: Optional values

  @propertyWrapper struct Box: Codable, Equatable {
    var wrappedValue: Int?

    init(wrappedValue: Int?) { self.wrappedValue = wrappedValue }
    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      wrappedValue = container.decodeNil() ? nil : try container.decode(Int.self)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(wrappedValue)
    }
  }

  struct Place: Codable, Equatable { var city: String }

  struct Profile: Codable {
    var nick: String?
    var name: String
    var flag: Bool?
    var place: Place?
    @Box var score: Int?
    var displayName: String { nick ?? name }
    var isOn: Bool { flag ?? false }
    var city: String { place?.city ?? "none" }
    var points: Int { score ?? 0 }
    var sameNick: String? { nick }
  }

  @Test func `a computed property with a default for nil isn't a field`() throws {
    #expect(code(\Profile.displayName == "a") == .unknownField)
    #expect(code(\Profile.isOn == false) == .unknownField)
    #expect(code(\Profile.city == "a") == .unknownField)
    #expect(code(\Profile.points == 0) == .unknownField)
    #expect(try json(\Profile.sameNick == "a") == #"{"nick":"a"}"#)
    #expect(try json(\Profile.nick == "a") == #"{"nick":"a"}"#)
    #expect(try json(\Profile.flag == false) == #"{"flag":false}"#)
    #expect(try json(\Profile.place?.city == "a") == #"{"place.city":"a"}"#)
    #expect(try json(\Profile.score == 1) == #"{"score":1}"#)
  }

  // MARK: Types

  enum Only: String, Codable { case only = "ONLY" }
  enum Shape: Codable, Equatable { case circle(radius: Double) }

  /// An array of a fixed length.
  struct Vector: Codable, Equatable {
    var (x, y, z) = (0.0, 0.0, 0.0)

    init(from decoder: any Decoder) throws {
      let values = try [Double](from: decoder)
      (x, y, z) = (values[0], values[1], values[2])
    }

    func encode(to encoder: any Encoder) throws { try [x, y, z].encode(to: encoder) }
  }

  struct Unusual: Codable {
    var name: String
    var only: Only
    var shape: Shape
    var value: JSONValue
    var numbers: [Int: String]
    var byID: [UUID: Int]
    var pair: SIMD2<Double>
    var triple: SIMD3<Double>
    var quadruple: SIMD4<Double>
    var vector: Vector
    var calendar: Calendar
    var timeZone: TimeZone
    var indexes: IndexSet
    var components: URLComponents
    var locale: Locale
    var interval: DateInterval
    var measurement: Measurement<UnitLength>
    var range: ClosedRange<Int>
  }

  @Test func `types with custom coding can be probed`() throws {
    #expect(try json(\Unusual.name == "a") == #"{"name":"a"}"#)
    #expect(try json(\Unusual.shape == .circle(radius: 1.5)) == #"{"shape":{"$eq":{"circle":{"radius":1.5}}}}"#)
    #expect(try json(\Unusual.value == 1) == #"{"value":1}"#)
    #expect(try json(\Unusual.numbers == [1: "a"]) == #"{"numbers":{"$eq":{"1":"a"}}}"#)
    #expect(try json(\Unusual.triple == SIMD3(0.5, 1.5, 2.5)).contains(#"{"triple":[0.5,1.5,2.5]}"#))
    #expect(try json(\Unusual.timeZone == TimeZone(secondsFromGMT: 0)!).hasPrefix(#"{"timeZone":"#))
    #expect(try json(\Unusual.components == URLComponents(string: "b")!).hasPrefix(#"{"components":"#))
    #expect(try json(\Unusual.indexes == IndexSet(integer: 1)).hasPrefix(#"{"indexes":"#))
    #expect(try json(\Unusual.calendar == Calendar(identifier: .iso8601)).hasPrefix(#"{"calendar":"#))
  }

  struct Versioned: Codable, Queryable {
    static let version = CodingUserInfoKey(rawValue: "version")!
    var name: String

    private enum CodingKeys: CodingKey { case name }

    init(from decoder: any Decoder) throws {
      guard decoder.userInfo[Self.version] as? Int == 2 else {
        throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "no version"))
      }
      name = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .name)
    }

    static let decoder: JSONDecoder = {
      let decoder = JSONDecoder()
      decoder.userInfo[version] = 2
      return decoder
    }()
  }

  @Test func `a type decodes itself with the user info of its decoder`() throws {
    #expect(try json(\Versioned.name == "a") == #"{"name":"a"}"#)
  }

  /// A type that decodes members until there is none.
  struct Endless: Codable {
    var values: [Int] = []

    struct Key: CodingKey {
      let stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      while container.contains(Key(stringValue: "v\(values.count)")) { values.append(values.count) }
    }
  }

  /// A type that decodes itself from nested containers.
  final class Chain: Codable {
    var next: Chain?
    private enum CodingKeys: CodingKey { case next }

    init(from decoder: any Decoder) throws {
      next = try Chain(from: decoder.container(keyedBy: CodingKeys.self).superDecoder(forKey: .next))
    }
  }

  @Test(.timeLimit(.minutes(1))) func `a type that decodes without end is an error`() {
    #expect(code(\Endless.values == [1]) == .unknownField)
    #expect(code(Query.isMissing(\Chain.next)) == .unprobedType)
  }

  // MARK: Key paths

  class Base: Codable {
    final var tags: [String] = []
    var level = Level.low
  }

  enum Level: Int, Codable { case low, high }

  final class Derived: Base {
    var data = Data() { didSet {} }
    var map: [String: [Int]] = [:]
    var others: [Int] { [1] }
  }

  struct Holder: Codable {
    var data: Data { didSet {} }
    var optional: Data? { didSet {} }
    var base: Base { didSet {} }
    var other: Base?
    var first: Int { didSet {} }
    var others: [Int] { [first] }

    subscript(index: Int) -> Int { index == 0 ? first : 0 }
  }

  @Test func `a part of a collection isn't a field and isn't evaluated`() {
    #expect(code(\Derived.tags[70] == "a") == .unknownField)
    #expect(code(\Holder.data[70] == 1) == .unknownField)
    #expect(code(\Holder.optional?[70] == 1) == .unknownField)
    #expect(code(\Holder.others[70] == 1) == .unknownField)
    #expect(code(\Holder.base.tags[70] == "a") == .unknownField)
    #expect(code(\Holder.other?.tags[70] == "a") == .unknownField)
    #expect(code(\Derived.map["a"]?[70] == 1) == .unknownField)
    #expect(code(\[String][70] == "a") == .unknownField)
  }

  @Test func `computed parts of stored values are followed`() throws {
    #expect(try json(\Holder.base.level == .high) == #"{"base.level":1}"#)
    #expect(try json(\Holder.base.level.rawValue == 1) == #"{"base.level":1}"#)
    #expect(try json(\Holder.other?.level.rawValue == 1) == #"{"other.level":1}"#)
    #expect(try json(\Holder[0] == 1) == #"{"first":1}"#)
  }

  /// A class whose instances change when they are read.
  final class Caching: Codable {
    var name = ""
    private var cache: [String: Int] = [:]
    private enum CodingKeys: CodingKey { case name }

    private func cached(_ key: String) -> String {
      cache[key, default: 0] += 1
      return name
    }

    var a: String { cached("a") }
    var b: String { cached("b") }
    var c: String { cached("c") }
    /// A property that makes a filter of its own type.
    var d: String { (\Caching.name == "").description.isEmpty ? "" : name }
  }

  @Test func `key paths of a class are evaluated by one thread at a time`() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for field in [\Caching.a, \Caching.b, \Caching.c, \Caching.d] {
        group.addTask { () throws in #expect(try json(field == "x") == #"{"name":"x"}"#) }
      }
      try await group.waitForAll()
    }
  }
}
