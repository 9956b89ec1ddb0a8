/// The maximum size and nesting depth of JSON text.
public struct JSONLimits: Equatable, Sendable {
  /// The maximum size of text, in bytes.
  public var maxByteCount: Int
  /// The maximum number of arrays and objects that are nested in each other, from 0 to `deepest`. A number has a depth
  /// of 0, `[]` has a depth of 1.
  public var maxDepth: Int {
    didSet { Self.check(maxDepth) }
  }

  /// The greatest maximum depth: 512 levels.
  public static let deepest = 512

  /// Creates limits. By default, text has any size and the greatest depth.
  /// - Precondition: `maxDepth` is from 0 to 512, and `maxByteCount` is not negative.
  public init(maxByteCount: Int = .max, maxDepth: Int = Self.deepest) {
    precondition(maxByteCount >= 0, "the size of JSON text can't be limited to \(maxByteCount) bytes")
    Self.check(maxDepth)
    self.maxByteCount = maxByteCount
    self.maxDepth = maxDepth
  }

  private static func check(_ maxDepth: Int) {
    precondition((0...deepest).contains(maxDepth), "the depth of JSON text can be limited to 0 to \(deepest)")
  }

  // MARK: Envelopes

  /// The limits of text that contains values of any permitted depth inside one or two containers of its own.
  package static let envelope = JSONLimits(envelopeDepth: 2)

  private init(envelopeDepth: Int) {
    maxByteCount = .max
    maxDepth = Self.deepest + envelopeDepth
  }
}
