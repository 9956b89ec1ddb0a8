/// The reply to an index-ensure request: `Protocol/wire.md` §6.10.
public struct EnsuredIndex: Equatable, Sendable {
  /// Whether the request created the index. If not, the index existed with the same definition.
  public let isCreated: Bool
  /// The name of the index.
  public let name: String

  public init(name: String, isCreated: Bool) {
    self.name = name
    self.isCreated = isCreated
  }

  /// Decodes the reply, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard let created = body.integer(at: 0, as: UInt8.self), created <= 1, body.byteCount > 1 else { return nil }
    isCreated = created == 1
    name = body.extracting(1..<body.byteCount).toString()
  }
}

extension ByteBuffer {
  public mutating func append(_ ensured: EnsuredIndex) {
    append(UInt8(ensured.isCreated ? 1 : 0))
    append(ensured.name)
  }
}
