extension RegularExpression {
  /// A search for a short literal in a text, sixteen positions at a time.
  ///
  /// Invariant: the literal has at least one byte, and no more than the limit it was created with, so that
  /// comparing it at each candidate takes constant time.
  struct LiteralSearcher: Sendable {
    private typealias Vector = SIMD16<UInt8>

    private let literal: [UInt8]
    private let first: UInt8
    private let last: UInt8

    /// Creates a searcher for a literal, or for as many of its leading scalars as fit.
    init(_ scalars: [Unicode.Scalar], maximumSize: Int) {
      var literal: [UInt8] = []
      for scalar in scalars {
        let bytes = UTF8.encode(scalar).map { Array($0) } ?? []
        if literal.count + bytes.count > maximumSize { break }
        literal += bytes
      }
      precondition(!literal.isEmpty, "a literal has at least one byte")
      self.literal = literal
      first = literal[0]
      last = literal[literal.count - 1]
    }

    /// Returns the position of the literal's first occurrence at or after a position, if any.
    func firstOccurrence(in text: Span<UInt8>, from start: Int) -> Int? {
      let lastOffset = literal.count - 1
      let end = text.count - lastOffset
      var position = start
      let firsts = Vector(repeating: first)
      let lasts = Vector(repeating: last)
      // Safe because any byte can be read as a raw byte.
      let bytes = unsafe text.bytes
      while position + Vector.scalarCount <= end {
        var candidates = Self.equal(Self.load(bytes, at: position), firsts)
        if lastOffset > 0 { candidates &= Self.equal(Self.load(bytes, at: position + lastOffset), lasts) }
        if candidates != Candidates() {
          var half = 0
          while half < 2 {
            while candidates[half] != 0 {
              let lane = candidates[half].trailingZeroBitCount / 8
              let candidate = position + half * 8 + lane
              if isOccurrence(in: text, at: candidate) { return candidate }
              candidates[half] &= ~(0xFF << UInt64(lane * 8))
            }
            half += 1
          }
        }
        position += Vector.scalarCount
      }
      while position < end {
        if isOccurrence(in: text, at: position) { return position }
        position += 1
      }
      return nil
    }

    private func isOccurrence(in text: Span<UInt8>, at position: Int) -> Bool {
      for offset in literal.indices where text[position + offset] != literal[offset] { return false }
      return true
    }

    /// A mask with the bytes of the equal lanes set.
    private typealias Candidates = SIMD2<UInt64>

    @inline(__always)
    private static func load(_ bytes: RawSpan, at position: Int) -> Vector {
      // Safe because the load checks its bounds and any sixteen bytes are a vector.
      unsafe bytes.unsafeLoadUnaligned(fromByteOffset: position, as: Vector.self)
    }

    @inline(__always)
    private static func equal(_ left: Vector, _ right: Vector) -> Candidates {
      let mask = Vector(repeating: 0).replacing(with: Vector(repeating: 0xFF), where: left .== right)
      // Safe because both types are sixteen bytes of integers. On a big-endian machine, lanes would differ.
      return unsafe unsafeBitCast(mask, to: Candidates.self).littleEndianLanes
    }
  }
}

extension SIMD2<UInt64> {
  /// The vector with each lane read in little-endian order.
  @inline(__always)
  fileprivate var littleEndianLanes: Self { Self(self[0].littleEndian, self[1].littleEndian) }
}
