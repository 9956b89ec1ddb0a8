import Foundation
import TypedQueries

/// The values that most tests are about.
struct Row: Codable, Queryable, Equatable {
  var a: Int
  var b = 0
  var c: String?
  var d: Kind?
  var name = ""
  var tags: [String] = []
  var subs: [Sub] = []
  var id = UUID()
  var url: URL?

  enum Kind: String, Codable { case foo, bar }

  struct Sub: Codable, Equatable {
    var price: Int
    var label = ""
  }
}
