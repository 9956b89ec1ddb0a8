import DataSources
import FoundationEssentials

// Harmony's mappers are objects. A DataSourceMapper needs only two functions; new code passes closures.

/// A conversion from one type to another. Subclasses override `map`.
///
/// Safe because the class has no state. A subclass with state has to keep it safe.
open class Mapper<From, To>: @unchecked Sendable {
  public init() {}

  /// Converts a value.
  open func map(_ from: From) throws -> To {
    throw DataSourceError(.notImplemented, "\(Self.self) doesn't override map")
  }

  /// Converts the values of an array.
  public func map(_ array: [From]) throws -> [To] {
    try array.map { try map($0) }
  }

  /// Converts the values of a dictionary.
  public func map<K>(_ dictionary: [K: From]) throws -> [K: To] {
    try dictionary.mapValues { try map($0) }
  }
}

/// A mapper that calls a closure.
public final class ClosureMapper<From, To>: Mapper<From, To>, @unchecked Sendable {
  private let closure: @Sendable (From) throws -> To

  public init(_ closure: @escaping @Sendable (From) throws -> To) {
    self.closure = closure
  }

  public override func map(_ from: From) throws -> To { try closure(from) }
}

/// A mapper that returns what it gets.
public final class IdentityMapper<T>: Mapper<T, T>, @unchecked Sendable {
  public override func map(_ from: T) throws -> T { from }
}

/// A mapper that casts. It throws `DataSourceError.failed` for a value of another type.
public final class CastMapper<From, To>: Mapper<From, To>, @unchecked Sendable {
  public override func map(_ from: From) throws -> To {
    guard let to = from as? To else {
      throw DataSourceError(.failed, "a value of \(type(of: from)) is not a \(To.self)")
    }
    return to
  }
}

/// A mapper that throws `DataSourceError.notImplemented`.
public final class VoidMapper<From, To>: Mapper<From, To>, @unchecked Sendable {
  public override func map(_ from: From) throws -> To {
    throw DataSourceError(.notImplemented, "a void mapper maps nothing")
  }
}

/// A mapper that applies two others.
public final class ComposedMapper<A, B, C>: Mapper<A, C>, @unchecked Sendable {
  private let first: Mapper<A, B>
  private let second: Mapper<B, C>

  public init(_ first: Mapper<A, B>, _ second: Mapper<B, C>) {
    self.first = first
    self.second = second
  }

  public override func map(_ from: A) throws -> C { try second.map(first.map(from)) }
}

// MARK: - Codable

/// A mapper that encodes values as JSON. It throws `DataSourceError.dataSerialization` for a value that JSON can't
/// represent.
public final class EncodableToDataMapper<T: Encodable>: Mapper<T, Data>, @unchecked Sendable {
  public override func map(_ from: T) throws -> Data {
    do {
      return try JSONEncoder().encode(from)
    } catch {
      throw DataSourceError(.dataSerialization, "a value of \(T.self) can't be encoded as JSON: \(error)")
    }
  }
}

/// A mapper that decodes values from JSON. It throws `DataSourceError.dataSerialization` for other bytes.
public final class DataToDecodableMapper<T: Decodable>: Mapper<Data, T>, @unchecked Sendable {
  public override func map(_ from: Data) throws -> T {
    do {
      return try JSONDecoder().decode(T.self, from: from)
    } catch {
      throw DataSourceError(.dataSerialization, "the JSON is not a \(T.self): \(error)")
    }
  }
}

/// A mapper that encodes a value as JSON and decodes another type from it. It throws
/// `DataSourceError.dataSerialization` if either fails.
public final class EncodableToDecodableMapper<E: Encodable, D: Decodable>: Mapper<E, D>, @unchecked Sendable {
  public override func map(_ from: E) throws -> D {
    try DataToDecodableMapper<D>().map(EncodableToDataMapper<E>().map(from))
  }
}
