/// What turns the values of a remote data source into the bytes that a store keeps, and back.
///
/// Each element of a list is encoded by itself, so that the server knows a list when it sees one. Errors that are no `DataSourceError`
/// reach the source's user as `DataSourceError.dataSerialization`.
public protocol ValueCodec<Value>: Sendable {
  associatedtype Value: Sendable

  func encode(_ value: Value) throws -> [UInt8]

  /// The value of the bytes, which may come from anybody who writes to the store.
  func decode(_ bytes: [UInt8]) throws -> Value
}
