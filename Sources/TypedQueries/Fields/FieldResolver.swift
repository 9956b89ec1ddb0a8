import DataSources
import Documents

/// The paths of fields by their key paths: from the type's table, or else found by probing, once for each key path.
enum FieldResolver {
  /// Safe because key paths are immutable, and what literals capture is only compared and hashed.
  private struct Key: Hashable, @unchecked Sendable {
    let keyPath: AnyKeyPath
    let enclosing: DocumentCoding?
  }

  private struct ProbeKey: Hashable {
    let type: ObjectIdentifier
    let enclosing: DocumentCoding?
  }

  /// What is known, by key paths. Key paths with subscripts can be any number, so it is limited.
  private static let known = LockedValue<[Key: Result<FieldPath?, FilterError>]>([:])
  private static let maxKnownCount = 10_000
  private static let probes = LockedValue<[ProbeKey: any Sendable]>([:])

  /// Returns the path of a field in documents; nil for a whole document or element: `\String.self`.
  /// - Throws: `FilterError` if the key path is no field, or the type can't be probed.
  /// - Complexity: O(1) after the first time.
  static func path<Root: Codable>(of field: PartialKeyPath<Root>) throws(FilterError) -> FieldPath? {
    let key = Key(keyPath: field, enclosing: DocumentCoding.enclosing)
    if let known = known.withLock({ $0[key] }) { return try known.get() }
    let result = Result { () throws(FilterError) in try find(field) }
    known.withLock { known in
      if known.count >= maxKnownCount { known = [:] }
      known[key] = result
    }
    return try result.get()
  }

  /// Returns the path of a field that is compared with another field.
  /// - Throws: As `path(of:)`, and for a whole element.
  static func comparedPath<Root: Codable>(of field: PartialKeyPath<Root>) throws(FilterError) -> FieldPath {
    guard let path = try path(of: field) else {
      throw FilterError(.unknownField, "\(field.name) can't be compared with another field")
    }
    return path
  }

  private static func find<Root: Codable>(_ field: PartialKeyPath<Root>) throws(FilterError) -> FieldPath? {
    if field == \Root.self { return nil }
    if let type = Root.self as? any Queryable.Type, let path = declaredPath(of: field, in: type) { return path }
    return try probe(of: Root.self).path(of: field)
  }

  private static func declaredPath<T: Queryable>(of field: AnyKeyPath, in type: T.Type) -> FieldPath? {
    (field as? PartialKeyPath<T>).flatMap { T.fields.path(of: $0) }
  }

  /// Returns the probe of a type, which is made at its first use.
  private static func probe<Root: Codable>(of type: Root.Type) -> TypeProbe<Root> {
    let key = ProbeKey(type: ObjectIdentifier(type), enclosing: DocumentCoding.enclosing)
    if let probe = probes.withLock({ $0[key] as? TypeProbe<Root> }) { return probe }
    let probe = TypeProbe(type)
    return probes.withLock { probes in
      if let other = probes[key] as? TypeProbe<Root> { return other }
      probes[key] = probe
      return probe
    }
  }
}
