/// Random documents, the same for the same seed.
struct DocumentSamples {
  private var random: Random

  init(seed: UInt64) { random = Random(seed: seed) }

  /// The fields that are extracted from an order. The last of them is near the end of the text.
  static let orderPaths = ["customer.name", "customer.address.location.lat", "total"]

  /// The size of an order, in bytes.
  static let orderSize = 1_024

  /// Returns an order of a web shop of 1 KiB: nested objects, an array of three objects, strings with a few characters
  /// beyond ASCII and escapes, whole and decimal numbers, Booleans and null, without white space.
  mutating func order(_ number: Int) -> String {
    let (street, city) = (pick(Self.streets), pick(Self.cities))
    let items = (0..<3).map { _ in
      """
      {"sku":"\(pick(Self.pets))-\(below(1_000_000))","title":"\(words(3))","quantity":\(1 + below(9)),\
      "price":\(price()),"options":{"gift":\(flag()),"color":"\(pick(Self.colors))"}}
      """
    }
    let start = """
      {"id":"order-\(number)","paid":\(flag()),"customer":{"name":"\(pick(Self.names)) \(pick(Self.surnames))",\
      "email":"\(pick(Self.names))\(below(100))@example.com","age":\(18 + below(70)),"address":{"street":"\(street) \
      \(1 + below(200))","city":"\(city)","location":{"lat":\(degrees(90)),"lon":\(degrees(180))}}},\
      "tags":["\(pick(Self.colors))","\(pick(Self.pets))"],"items":[\(items.joined(separator: ","))],\
      "ratings":[\(below(6)),\(below(6)),\(below(6)),\(below(6))],"note":"\\"\(words(2))\\"\\n
      """
    let end = """
      ","created":"2026-0\(1 + below(9))-1\(below(10))T1\(below(10)):2\(below(10)):00Z","shipped":null,\
      "total":\(price())}
      """
    var text = start
    while text.utf8.count + end.utf8.count + 12 < Self.orderSize { text += " " + pick(Self.nouns) }
    text += String(repeating: ".", count: max(0, Self.orderSize - text.utf8.count - end.utf8.count))
    return text + end
  }

  /// Returns the name of a customer that orders may have.
  mutating func customer() -> String { "\(pick(Self.names)) \(pick(Self.surnames))" }

  /// Returns small documents about persons, in random order of their numbers.
  mutating func persons(_ count: Int) -> [String] {
    (0..<count).shuffled(using: &random).map { number in
      """
      {"name":"\(pick(Self.names))","age":\(1 + below(90)),"docNumber":\(number),"pet":"\(pick(Self.pets))"}
      """
    }
  }

  private mutating func below(_ bound: Int) -> Int { Int(random.below(UInt64(bound))) }
  private mutating func pick(_ words: [String]) -> String { words[below(words.count)] }
  private mutating func words(_ count: Int) -> String {
    (0..<count).map { _ in pick(Self.nouns) }.joined(separator: " ")
  }
  private mutating func flag() -> Bool { below(2) == 0 }
  private mutating func price() -> String { "\(1 + below(500)).\(10 + below(90))" }
  private mutating func degrees(_ limit: Int) -> String { "\(below(2 * limit) - limit).\(100_000 + below(900_000))" }

  private static let names = ["mike", "anna", "zoë", "liam", "olga", "noah", "mia", "jürgen"]
  private static let surnames = ["Miller", "Novák", "Smith", "García", "Kowalski", "Rossi"]
  private static let pets = ["cat", "dog", "bird", "fish"]
  private static let colors = ["red", "green", "blue", "black", "white"]
  private static let streets = ["Main Street", "Station Road", "Rue Saint-Honoré", "High Street"]
  private static let cities = ["Berlin", "Paris", "Madrid", "Zürich", "London"]
  private static let nouns = ["paper", "lamp", "table", "green", "coffee", "window", "garden", "copper", "glass"]
}
