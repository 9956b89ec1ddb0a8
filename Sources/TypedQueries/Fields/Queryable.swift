import DataSources
import Documents
import FoundationEssentials

/// A type whose values are documents: what requests and filters are about.
///
///     struct Person: Codable, Sendable { var name: String; var age: Int }
///     extension Person: Queryable {}
///
///     let adults = Person.all.where(\Person.age >= 18).sort(\.name)
///
/// **Fields.** The name of a field is found by decoding probe values: the value of a key path follows one member of the
/// JSON that instances are encoded as. This covers custom coding keys, nested types, optionals, property wrappers and
/// enums. A key path that follows no member, such as a computed property, and a type that refuses the probe values are
/// errors, unless `fields` has the name.
///
/// **Values** in filters are encoded by `encoder`, as they are in documents. It is that of the whole documents: the
/// encoders of types that are parts of them don't matter.
public protocol Queryable: CustomJSONCoding {
  /// The names of fields that can't be found by probing, or needn't be.
  static var fields: FieldNames<Self> { get }
}

extension Queryable {
  public static var fields: FieldNames<Self> { [:] }
  public static var encoder: JSONEncoder { JSONCoding.defaultEncoder }
  public static var decoder: JSONDecoder { JSONCoding.defaultDecoder }

  /// The request for all documents of the type.
  public static var all: Request<Self> { Request() }
}

/// The names of fields, by their key paths.
///
///     static let fields: FieldNames = [\Person.name: "n", \Person.address.city: "address.city"]
///
/// A name is a path in a document: names of members joined by dots, in which a backslash makes the next character part
/// of a name.
///
/// Safe because key paths are immutable, and what literals capture is only compared and hashed.
public struct FieldNames<Root>: @unchecked Sendable, ExpressibleByDictionaryLiteral {
  private let paths: [PartialKeyPath<Root>: FieldPath]

  /// Creates a table. If key paths are equal, the last one counts.
  public init(dictionaryLiteral elements: (PartialKeyPath<Root>, FieldPath)...) {
    paths = Dictionary(elements) { _, last in last }
  }

  func path(of field: PartialKeyPath<Root>) -> FieldPath? { paths[field] }
}
