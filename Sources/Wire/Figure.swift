/// A named number of a stats reply: `Protocol/wire.md` §6.1.
public struct Figure: Equatable, Sendable {
  public let name: String
  public let value: UInt64

  public init(_ name: String, _ value: UInt64) {
    self.name = name
    self.value = value
  }

  /// The figures of a stats reply, or nil when it is malformed.
  public static func decode(_ body: RawSpan) -> [Figure]? {
    var figures: [Figure] = []
    var place = 0
    while place < body.byteCount {
      guard let name = body.shortText(at: place), let value = body.integer(at: name.end, as: UInt64.self) else {
        return nil
      }
      figures.append(Figure(name.text, value))
      place = name.end + 8
    }
    return figures
  }
}

extension ByteBuffer {
  public mutating func append(_ figure: Figure) {
    appendShort(figure.name)
    append(figure.value)
  }
}
