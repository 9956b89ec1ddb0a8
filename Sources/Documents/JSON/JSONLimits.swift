/// The maximum size and nesting depth of JSON text.
public struct JSONLimits: Equatable, Sendable {
  /// In bytes.
  public var maxByteCount: Int
  /// How many arrays and objects can be nested in each other. A number has a depth of 0, `[]` has a depth of 1.
  public var maxDepth: Int {
    didSet { Self.check(maxDepth) }
  }

  /// The greatest maximum depth.
  public static let deepest = 512

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
