import FoundationEssentials

/// An error of a data source, local or remote. Errors of the same kind are equal; the message is for people.
public struct DataSourceError: Error, Hashable, Sendable {
  /// What went wrong. The raw value is the code that goes over the wire; a code is never reused.
  public enum Kind: Int, Hashable, Sendable, CaseIterable {
    /// The cause is unknown.
    case unknown = 0
    /// There is no such value, or only one of the other kind (a list instead of a single value, or the reverse).
    case notFound = 1
    /// An argument is invalid: a put without a value, a negative offset, an empty key.
    case illegalArgument = 2
    /// The source doesn't support this operation.
    case notImplemented = 3
    /// A validation rejected the value.
    case notValid = 4
    /// The operation was attempted and failed.
    case failed = 5
    /// The source doesn't support the query in this operation.
    case queryNotSupported = 6
    /// The stored bytes are not a value of the type, or the value can't be encoded.
    case dataSerialization = 7
    /// The value is encrypted with a key that the source doesn't have. Only local sources report this.
    case wrongKey = 8
    /// The condition of a write doesn't hold: another writer has changed the entry first.
    case conflict = 23
    /// A watch has missed changes, because its consumer was too slow or the server was restarted.
    case changesLost = 36
  }

  public let kind: Kind
  /// An explanation for people and logs. It doesn't take part in comparisons.
  public let message: String

  /// - Parameter message: What happened, for people; if it is empty, the message is what the kind means.
  public init(_ kind: Kind, _ message: String = "") {
    self.kind = kind
    self.message = message.isEmpty ? kind.meaning : message
  }

  /// The stable code of the kind.
  public var code: Int { kind.rawValue }

  public static func == (a: DataSourceError, b: DataSourceError) -> Bool { a.kind == b.kind }
  public func hash(into hasher: inout Hasher) { hasher.combine(kind) }
}

extension DataSourceError {
  /// Makes `catch DataSourceError.notFound` catch errors of that kind and no others.
  public static func ~= (pattern: DataSourceError, error: any Error) -> Bool {
    (error as? DataSourceError) == pattern
  }
}

extension DataSourceError: CustomStringConvertible, LocalizedError {
  public var description: String { message }
  /// The message. It isn't translated.
  public var errorDescription: String? { message }
}

extension DataSourceError.Kind {
  fileprivate var meaning: String {
    switch self {
    case .unknown: "the operation failed for an unknown reason"
    case .notFound: "the value was not found"
    case .illegalArgument: "an argument is invalid"
    case .notImplemented: "the source doesn't support this operation"
    case .notValid: "the value is not valid"
    case .failed: "the operation failed"
    case .queryNotSupported: "the source doesn't support the query"
    case .dataSerialization: "the value can't be encoded or decoded"
    case .wrongKey: "the value is encrypted with another key"
    case .conflict: "another writer has changed the entry first"
    case .changesLost: "changes were lost"
    }
  }
}

extension DataSourceError {
  public static let unknown = DataSourceError(.unknown)
  public static let notFound = DataSourceError(.notFound)
  public static let illegalArgument = DataSourceError(.illegalArgument)
  public static let notImplemented = DataSourceError(.notImplemented)
  public static let notValid = DataSourceError(.notValid)
  public static let failed = DataSourceError(.failed)
  public static let queryNotSupported = DataSourceError(.queryNotSupported)
  public static let dataSerialization = DataSourceError(.dataSerialization)
  public static let wrongKey = DataSourceError(.wrongKey)
  public static let conflict = DataSourceError(.conflict)
  public static let changesLost = DataSourceError(.changesLost)
}
