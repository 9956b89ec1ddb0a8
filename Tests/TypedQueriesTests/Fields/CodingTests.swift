import Foundation
import Testing
import TypedQueries

/// Names and values as the encoder of the whole document writes them.
@Suite struct CodingTests {
  struct Pet: Codable, Equatable {
    var firstName: String
    var born: Date
    var toys: [Toy] = []
  }

  struct Toy: Codable, Equatable { var toyName: String }

  /// A type whose own encoder doesn't matter in other types.
  struct Visit: Codable, Equatable, Queryable {
    var petName: String
    static let encoder = Owner.encoder
    static let decoder = Owner.decoder
  }

  struct Owner: Codable, Equatable, Queryable {
    var ownerName: String
    var bestPet: Pet
    var pets: [Pet]
    var dates: [Date] = []

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

  struct Plain: Codable {
    var visits: [Visit]
  }

  struct Outer: Codable, Queryable {
    var inner: Inner
    struct Inner: Codable { var city: String }
    static let fields: FieldNames<Outer> = [\.inner.city: "place.town"]
  }

  private let noon = Date(timeIntervalSince1970: 1_700_000_000)
  private var owners: [Owner] {
    let pets = [
      Pet(firstName: "Rex", born: noon, toys: [Toy(toyName: "ball")]), Pet(firstName: "Tom", born: noon + 9),
    ]
    return pets.map { Owner(ownerName: $0.firstName, bestPet: $0, pets: [$0], dates: [$0.born]) }
  }

  private func names(_ filter: Filter<Owner>) throws -> [String] {
    try owners.fetch(Owner.all.where(filter), \.ownerName)
  }

  @Test func `elements are coded as parts of their documents`() throws {
    #expect(try names(Query.any(\.pets) { \Pet.firstName == "Rex" && \Pet.born < noon + 1 }) == ["Rex"])
    #expect(try names(Query.all(\.pets) { \Pet.firstName != "Rex" }) == ["Tom"])
    #expect(try names(Query.none(\.pets) { \Pet.born >= noon + 1 }) == ["Rex"])
    #expect(try names(Query.any(\.pets) { Query.any(\.toys) { \Toy.toyName == "ball" } }) == ["Rex"])
    #expect(try names(Query.any(\.dates) { \Date.self > noon }) == ["Tom"])
    // The same key path outside of the closure.
    let filter: Filter<Pet> = \Pet.firstName == "Rex"
    #expect(try filter.selector.description == #"{"firstName":"Rex"}"#)
    #expect(try filter.matches(owners[0].bestPet))
  }

  @Test func `the encoder of a type doesn't matter in documents of another type`() throws {
    let plain = Plain(visits: [Visit(petName: "Rex")])
    #expect(try Query.any(\Plain.visits) { \Visit.petName == "Rex" }.matches(plain))
    #expect(try Filter<Plain>(#Predicate { $0.visits.contains { $0.petName == "Rex" } }).matches(plain))
  }

  @Test func `a predicate's key paths are fields of the whole document`() throws {
    let (noon, name) = (noon, "Rex")
    #expect(try names(Filter(#Predicate { $0.bestPet.firstName == name })) == ["Rex"])
    #expect(try names(Filter(#Predicate { $0.bestPet.born > noon })) == ["Tom"])
    #expect(try names(Filter(#Predicate { $0.pets.contains { $0.firstName == name && $0.born <= noon } })) == ["Rex"])
    #expect(try names(Filter(#Predicate { $0.pets.allSatisfy { $0.firstName != "Tom" } })) == ["Rex"])
    let filter = Filter<Outer>(#Predicate { $0.inner.city == "x" })
    #expect(try filter.selector.description == #"{"place.town":"x"}"#)
  }

  @Test func `a number that documents can't have exactly is an error`() throws {
    struct Numbers: Codable { var u: UInt64, o: UInt? = nil }
    let exact: Filter<Numbers> = \Numbers.u == 1 << 63
    #expect(try exact.matches(Numbers(u: 1 << 63)))
    for filter in [\Numbers.u == UInt64.max, \Numbers.o == .max, \Numbers.u === [1, .max], \Numbers.u < .max] {
      let error = #expect(throws: FilterError.self) { try filter.selector }
      #expect(error?.code == .badValue)
    }
  }
}
