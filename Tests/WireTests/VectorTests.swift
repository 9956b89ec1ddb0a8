import TestSupport
import Testing
import Wire

/// The golden vectors, encoded and decoded, and cut anywhere.
struct VectorTests {
  @Test func `there are vectors for every operation, outcome and error code`() {
    let requested = Set(Vector.requests.compactMap(\.frame.operation))
    #expect(requested == Set(Operation.allCases.map(\.vectorName)))
    let answered = Set(Vector.replies.compactMap(\.frame.to)).subtracting(["notice", "unknown"])
    #expect(answered == requested.subtracting(["credit", "cancel"]))
    #expect(Set(Vector.replies.compactMap(\.frame.code)) == Set(ErrorCode.allCases.map { "\($0)" }))
    #expect(Set(Vector.replies.compactMap(\.frame.outcome)) == [0, 1, 2, 3])
  }

  @Test(arguments: Vector.requests) func `a request's bytes decode to its fields`(_ vector: Vector) {
    #expect(Fields(request: vector.bytes) == vector.frame)
  }

  @Test(arguments: Vector.requests) func `a request's fields encode to its bytes`(_ vector: Vector) {
    guard vector.decodeOnly != true else { return }
    #expect(vector.frame.encodedRequest().hex == vector.hex)
  }

  @Test(arguments: Vector.replies) func `a reply's bytes decode to its fields`(_ vector: Vector) {
    #expect(Fields(reply: vector.bytes, to: vector.frame.to!) == vector.frame)
  }

  @Test(arguments: Vector.replies) func `a reply's fields encode to its bytes`(_ vector: Vector) {
    guard vector.decodeOnly != true else { return }
    #expect(vector.frame.encodedReply().hex == vector.hex)
  }

  @Test(arguments: Vector.replies) func `the outcome of an error follows from its code`(_ vector: Vector) throws {
    guard let name = vector.frame.code else { return }
    let code = try #require(ErrorCode.allCases.first { "\($0)" == name })
    #expect(code.outcome.rawValue == vector.frame.outcome)
  }

  /// A shorter body can be another valid request (with a shorter key), but never the same one, and it never traps.
  @Test func `a body that is cut short anywhere decodes to nothing or to something else`() {
    for vector in Vector.requests {
      for cut in truncations(of: vector) {
        #expect(Fields(request: cut) != vector.frame || vector.decodeOnly == true, "\(vector.name), \(cut.count) bytes")
      }
    }
    for vector in Vector.replies {
      for cut in truncations(of: vector) {
        let fields = Fields(reply: cut, to: vector.frame.to!)
        #expect(fields != vector.frame || vector.decodeOnly == true, "\(vector.name), \(cut.count) bytes")
      }
    }
  }

  /// Whichever byte is changed, nothing traps, and what decodes encodes to the same bytes.
  @Test func `a body with a changed byte decodes to nothing or re-encodes to itself`() {
    for vector in Vector.requests where vector.bytes.count < 200 {
      for index in Frame.headerSize..<max(Frame.headerSize, vector.bytes.count) {
        for byte: UInt8 in [0, 1, 2, 4, 8, 0x7F, 0x80, 0xFF] {
          var bytes = vector.bytes
          bytes[index] = byte
          guard let fields = Fields(request: bytes), vector.decodeOnly != true else { continue }
          guard fields.operation != "hello", fields.hasOnlyText, fields.hasOneForm else { continue }
          #expect(fields.encodedRequest().hex == bytes.hex, "\(vector.name), byte \(index) is \(byte)")
        }
      }
    }
    for vector in Vector.replies where vector.bytes.count < 200 {
      for index in Frame.headerSize..<max(Frame.headerSize, vector.bytes.count) {
        for byte: UInt8 in [0, 1, 2, 0x7F, 0x80, 0xFF] {
          var bytes = vector.bytes
          bytes[index] = byte
          _ = Fields(reply: bytes, to: vector.frame.to!)
        }
      }
    }
  }

  /// Returns the vector with every shorter body, and a length field that matches.
  private func truncations(of vector: Vector) -> [[UInt8]] {
    let bytes = vector.bytes
    let tail = max(Frame.headerSize, bytes.count - 300)
    let sizes = Array(Frame.headerSize..<min(bytes.count, Frame.headerSize + 300)) + Array(tail..<bytes.count)
    return Set(sizes).map { size in
      let length = UInt32(size - Frame.lengthSize)
      return (0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) } + bytes[4..<size]
    }
  }
}
