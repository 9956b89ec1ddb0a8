import TestSupport
import Testing
import Wire

struct BodyFlawTests {
  /// The bodies are random, or begin like a valid one, so that all fields have wrong values at some time.
  @Test func `whatever a body is, its flaw can be described`() {
    var random = SeededGenerator.announced()
    for _ in 0..<20_000 {
      var body = (0..<Int.random(in: 0...60, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      for index in body.indices where Bool.random(using: &random) { body[index] &= 3 }
      let offset = Int.random(in: 0...body.count, using: &random)
      for text in body.flaws(at: offset) { #expect(!text.isEmpty) }
    }
  }

  @Test(arguments: Vector.requests) func `a request that is cut short has a flaw that says so`(_ vector: Vector) {
    guard vector.frame.operation == "put", case let body = Array(vector.bytes.dropFirst(Frame.headerSize)) else {
      return
    }
    for count in 0..<body.count {
      let cut = Array(body[..<count])
      guard cut.write() == nil else { continue }
      let flaw = unsafe BodyFlaw.ofWrite(cut.span.bytes, at: 0)
      #expect(flaw.hasPrefix("the record at byte 0 of the body ") || flaw == "the body ends where a record is expected")
    }
  }
}

extension [UInt8] {
  /// What each function says about the bytes.
  fileprivate func flaws(at offset: Int) -> [String] {
    let bytes = unsafe span.bytes
    return [
      BodyFlaw.ofEmpty(bytes), BodyFlaw.ofInteger(bytes, byteCount: 4), BodyFlaw.ofHello(bytes), BodyFlaw.ofKey(bytes),
      BodyFlaw.ofKeyList(bytes), BodyFlaw.ofWrite(bytes, at: offset), BodyFlaw.ofApply(bytes, at: offset),
      BodyFlaw.ofScan(bytes, of: .page), BodyFlaw.ofScan(bytes, of: .all), BodyFlaw.ofWatch(bytes),
      BodyFlaw.ofDocuments(bytes, of: .find), BodyFlaw.ofDocuments(bytes, of: .aggregate),
      BodyFlaw.ofDocuments(bytes, of: .changeMatching),
    ]
  }
}
