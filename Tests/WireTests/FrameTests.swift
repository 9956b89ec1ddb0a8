import Testing
import Wire

struct FrameTests {
  private static let maxLength = 1 << 24

  @Test(arguments: Vector.requests + Vector.replies)
  func `a frame that is split at any byte is partial until its last byte has arrived`(_ vector: Vector) {
    let bytes = vector.bytes
    for size in 0..<bytes.count {
      let part = Array(bytes[..<size])
      guard case .partial(let needed) = part.scanned(maxLength: Self.maxLength) else {
        Issue.record("\(size) of \(bytes.count) bytes are not partial")
        return
      }
      #expect(needed > size && needed <= bytes.count)
      if size >= Frame.lengthSize { #expect(needed == bytes.count) }
    }
    guard case .frame(let header) = bytes.scanned(maxLength: Self.maxLength) else {
      Issue.record("the complete bytes are no frame")
      return
    }
    #expect(header.frameSize == bytes.count)
    #expect(header.body(at: 0) == Frame.headerSize..<bytes.count)
  }

  @Test func `frames that arrive together are found one after the other, wherever the stream is cut`() {
    let vectors = Vector.requests.filter { $0.bytes.count < 400 }
    let stream = vectors.flatMap(\.bytes)
    for chunk in [1, 2, 3, 5, 7, 11, 12, 13, 64, 251, 4_096, stream.count] {
      var buffer = ByteBuffer()
      var found: [Fields?] = []
      var next = 0
      while next < stream.count {
        let end = min(next + chunk, stream.count)
        buffer.append(Array(stream[next..<end]))
        next = end
        var offset = 0
        while true {
          let scanned = buffer.withSpan { bytes -> [UInt8]? in
            guard case .frame(let header) = FrameScan(bytes, at: offset, maxLength: Self.maxLength) else { return nil }
            return bytes.extracting(offset..<offset + header.frameSize).toArray()
          }
          guard let scanned else { break }
          found.append(Fields(request: scanned))
          offset += scanned.count
        }
        buffer.consume(offset)
      }
      #expect(buffer.count == 0)
      #expect(found == vectors.map { Optional($0.frame) }, "in chunks of \(chunk)")
    }
  }

  @Test(arguments: [0, 1, 7, 4_097, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF] as [UInt32])
  func `an impossible frame length is recognized from its four bytes`(_ length: UInt32) {
    var buffer = ByteBuffer()
    buffer.append(length)
    let scan = buffer.withSpan { FrameScan($0, at: 0, maxLength: 4_096) }
    #expect(scan == .invalid(length: length))
  }

  @Test(arguments: [8, 9, 4_096] as [UInt32])
  func `a length at the limits is accepted`(_ length: UInt32) {
    var buffer = ByteBuffer()
    buffer.append(length)
    let scan = buffer.withSpan { FrameScan($0, at: 0, maxLength: 4_096) }
    #expect(scan == .partial(frameSize: Int(length) + 4))
  }

  @Test func `a frame at or past the end of the bytes is partial`() {
    let bytes = [UInt8](repeating: 0xFF, count: 5)
    for offset in 2...9 {
      #expect(bytes.scanned(at: offset, maxLength: 4_096) == .partial(frameSize: Frame.headerSize))
    }
  }

  @Test func `a frame can begin after consumed bytes`() {
    var buffer = ByteBuffer()
    buffer.appendRequest(.ping, id: 1)
    buffer.consume(12)
    buffer.append(UInt8(0xAA))
    let start = buffer.beginReply(id: 7, more: true)
    buffer.append("body")
    buffer.endFrame(start)
    let scan = buffer.withSpan { FrameScan($0, at: 1, maxLength: 100) }
    #expect(scan == .frame(FrameHeader(bodySize: 4, kind: 0, flags: Frame.more, detail: 0, id: 7)))
  }
}
