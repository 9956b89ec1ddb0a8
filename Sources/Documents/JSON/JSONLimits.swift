/// How large and how deeply nested JSON text may be.
public struct JSONLimits: Equatable, Sendable {
  /// In bytes.
  public var maxByteCount: Int
  /// Arrays and objects within each other, from 0 to 512; text without any has a depth of 0.
  public var maxDepth: Int

  /// The deepest nesting that can be asked for.
  public static let deepest = 512

  /// - Precondition: `maxDepth` is in 0…512.
  public init(maxByteCount: Int = .max, maxDepth: Int = Self.deepest) {
    precondition((0...Self.deepest).contains(maxDepth), "the depth of JSON can be limited to 0 to 512")
    self.maxByteCount = maxByteCount
    self.maxDepth = maxDepth
  }
}
