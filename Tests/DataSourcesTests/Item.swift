/// A value as a service might keep it.
struct Item: Codable, Hashable, Sendable, ExpressibleByStringLiteral {
  var title: String
  var price: Int?

  init(_ title: String, price: Int? = nil) {
    self.title = title
    self.price = price
  }

  init(stringLiteral title: String) {
    self.init(title)
  }
}
