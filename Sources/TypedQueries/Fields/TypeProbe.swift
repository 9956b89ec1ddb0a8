import Documents
import FoundationEssentials

/// Instances of a type that differ from a first one in one decoded value each, with the documents that they are encoded
/// as. They show which member of a document has the value of a key path.
///
/// Safe because the instances are used under the lock only, and never leave the probe. They may change: a lazy property
/// of a class does when it is read. The lock is recursive, because a computed property may use filters.
final class TypeProbe<Root: Codable>: @unchecked Sendable {
  private struct Instance {
    let value: Root
    let document: JSONValue
  }

  /// The instances, the first one first; none if the type refuses all probe values.
  private let instances: [Instance]
  /// Why the type has no instances.
  private let refusal: String
  private let coding: DocumentCoding
  private let lock = RecursiveLock()

  /// The maximum number of instances for each decoded value.
  private static var maxVariantCount: Int { 4 }

  init(_ type: Root.Type) {
    coding = DocumentCoding(of: type)
    (instances, refusal) = Self.probe(coding)
  }

  private static func probe(_ coding: DocumentCoding) -> (instances: [Instance], refusal: String) {
    do { return (try makeInstances(coding), "") } catch { return ([], "\(error)") }
  }

  private static func makeInstances(_ coding: DocumentCoding) throws -> [Instance] {
    var values = ProbeValues()
    var instances = [try instance(&values, coding)]
    for path in values.paths {
      var changed = values
      var count = 0
      while count < maxVariantCount, changed.advance(path) {
        guard let instance = try? instance(&changed, coding) else { continue }
        instances.append(instance)
        count += 1
      }
    }
    for path in values.optionalPaths {
      var changed = values
      changed.makeNil(path)
      if let instance = try? instance(&changed, coding) { instances.append(instance) }
    }
    return instances
  }

  private static func instance(_ values: inout ProbeValues, _ coding: DocumentCoding) throws -> Instance {
    let value = try ProbeDecoder.decode(Root.self, &values, userInfo: coding.decoder.userInfo)
    let text = try coding.bytes(of: value)
    return Instance(value: value, document: try JSONValue(parsing: text.span))
  }

  /// Returns the path of the only member that has the value of the key path in all instances.
  /// - Throws: `FilterError` if there is none, if there are several, or if the type can't be probed.
  func path(of field: PartialKeyPath<Root>) throws(FilterError) -> FieldPath {
    lock.lock()
    defer { lock.unlock() }
    guard let first = instances.first else {
      throw FilterError(
        .unprobedType,
        "the fields of \(Root.self) are unknown, because it can't be decoded from probe values (\(refusal)); "
          + "declare their names in \(Root.self).fields, such as [\\\(Root.self).name: \"name\"]")
    }
    guard Self.isSafe(field, in: first.value) else {
      throw unknown(field, "it is a part of a collection or of a computed value, or unwraps an optional value with !")
    }
    var values: [JSONValue] = []
    for instance in instances {
      guard let json = json(of: instance.value[keyPath: field]) else {
        throw unknown(field, "its value can't be encoded")
      }
      values.append(json)
    }
    var paths: [[String]] = []
    Self.forEachMember(of: first.document) { path in
      if follows(path, values) { paths.append(path) }
    }
    guard let path = paths.first else { throw unknown(field, "no member of its JSON has the same value") }
    guard paths.count == 1 else {
      let names = paths.map { $0.joined(separator: ".") }.joined(separator: " and ")
      throw unknown(field, "\(names) in its JSON have the same value")
    }
    return FieldPath(names: path)
  }

  private func json(of value: Any) -> JSONValue? {
    if Mirror(reflecting: value).displayStyle == .optional, Mirror(reflecting: value).children.isEmpty { return .null }
    return (value as? any Encodable).flatMap { try? coding.json(of: $0) }
  }

  private func unknown(_ field: PartialKeyPath<Root>, _ reason: String) -> FilterError {
    FilterError(
      .unknownField,
      "\(field.name) is not a known field of \(Root.self): \(reason); if it is one, declare its name in "
        + "\(Root.self).fields")
  }

  /// Calls `body` with the paths of all members, at any depth, but not in arrays.
  private static func forEachMember(of value: JSONValue, _ path: [String] = [], _ body: ([String]) -> Void) {
    guard case .object(let members) = value else { return }
    for (name, member) in members where !name.isEmpty {
      body(path + [name])
      forEachMember(of: member, path + [name], body)
    }
  }

  /// Returns whether a member has these values in the instances, and not always the same one.
  private func follows(_ path: [String], _ values: [JSONValue]) -> Bool {
    var first: JSONValue?
    var varies = false
    for (value, instance) in zip(values, instances) {
      let member = path.reduce(instance.document as JSONValue?) { $0?[$1] } ?? .null
      guard member == value else { return false }
      if let first { if member != first { varies = true } } else { first = member }
    }
    return varies
  }

  // MARK: Safety

  /// Returns whether the key path can be applied to instances without stopping the program, as far as that can be told.
  ///
  /// A subscript of a collection could be out of range, and `!` could meet nil. Key paths tell neither by their types,
  /// but their descriptions do: `\Person.tags.<computed 0x7f… (String)>`, in which only what is stored has a name.
  private static func isSafe(_ field: PartialKeyPath<Root>, in value: Root) -> Bool {
    let text = field.debugDescription
    if text.contains("!") { return false }
    // What the next part is applied to; nil if that is unknown.
    var current: Any? = value
    // The first part is the type.
    for part in parts(of: text).dropFirst() {
      let name = part.drop { $0 == "." || $0 == "?" }.prefix { $0 != "?" }
      if name.isEmpty { continue }
      if name.hasPrefix("<") {
        guard let parent = current, !(parent is any Collection) else { return false }
        // A stored property is computed, too, if it has observers or if a subclass can override it.
        let type = name.drop { $0 != "(" }.dropFirst().dropLast(2)
        current = storedValues(of: parent).first { "\(Swift.type(of: $0.value))" == type }?.value
      } else {
        current = current.flatMap { parent in storedValues(of: parent).first { $0.label == String(name) }?.value }
      }
      if let optional = current, Mirror(reflecting: optional).displayStyle == .optional {
        current = Mirror(reflecting: optional).children.first?.value
      }
    }
    return true
  }

  /// Returns the stored properties of a value, with those of its superclasses.
  private static func storedValues(of value: Any) -> [Mirror.Child] {
    sequence(first: Mirror(reflecting: value), next: \.superclassMirror).flatMap { Array($0.children) }
  }

  /// Returns the parts of a description that begin with a dot outside of angle brackets.
  private static func parts(of text: String) -> [Substring] {
    var (parts, start, depth) = ([Substring](), text.startIndex, 0)
    for index in text.indices {
      switch text[index] {
      case "<": depth += 1
      case ">": depth -= 1
      case "." where depth == 0:
        parts.append(text[start..<index])
        start = index
      default: break
      }
    }
    return parts + [text[start...]]
  }
}

extension AnyKeyPath {
  /// The key path as text, without the addresses of computed parts: `\Person.address.city`, `\Person.<computed Int>`.
  var name: String {
    debugDescription.replacing(/<computed 0x[0-9a-f]+ \((?<type>.*?)\)>/) { "<computed \($0.output.type)>" }
  }
}
