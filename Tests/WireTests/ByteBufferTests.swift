import TestSupport
import Testing
import Wire

struct ByteBufferTests {
  @Test func `integers in a buffer are little-endian`() {
    var buffer = ByteBuffer()
    buffer.append(UInt8(1))
    buffer.append(UInt16(0x0302))
    buffer.append(UInt32(0x0706_0504))
    buffer.append(UInt64(0x0F0E_0D0C_0B0A_0908))
    #expect(buffer.toArray() == Array(1...15))
    buffer.replace(at: 1, with: UInt16(0xBBAA))
    #expect(buffer.toArray()[..<4] == [1, 0xAA, 0xBB, 4])
    let read = buffer.withSpan { ($0.integer(at: 3, as: UInt32.self), $0.integer(at: 12, as: UInt32.self)) }
    #expect(read.0 == 0x0706_0504)
    #expect(read.1 == nil)
    #expect(buffer.withSpan { $0.integer(at: -1, as: UInt8.self) } == nil)
    #expect(buffer.withSpan { $0.integer(at: .max, as: UInt64.self) } == nil)
  }

  @Test func `memory can be appended first and written later`() throws {
    var buffer = ByteBuffer()
    buffer.append([1, 2, 3])
    buffer.consume(1)
    let offset = buffer.extend(by: 1_000)
    buffer.append([4])
    #expect(offset == 2)
    unsafe buffer.overwrite(at: offset, byteCount: 1_000) { room in
      for index in room.indices { unsafe room[index] = 9 }
    }
    #expect(buffer.toArray() == [2, 3] + Array(repeating: 9, count: 1_000) + [4])
  }

  @Test func `a buffer equals an array after any appends, consumes and truncations`() {
    let seed = UInt64.random(in: 1...999_999)
    var random = SeededGenerator(seed: seed)
    var buffer = ByteBuffer()
    var model: [UInt8] = []
    for step in 0..<20_000 {
      switch Int.random(in: 0..<8, using: &random) {
      case 0...2:
        let bytes = (0..<Int.random(in: 0...700, using: &random)).map { UInt8(truncatingIfNeeded: $0 &+ step) }
        buffer.append(bytes)
        model += bytes
      case 3:
        buffer.append(UInt64(step))
        model += (0..<8).map { UInt8(truncatingIfNeeded: step >> (8 * $0)) }
      case 4, 5:
        let count = Int.random(in: 0...model.count, using: &random)
        buffer.consume(count)
        model.removeFirst(count)
      case 6:
        let count = Int.random(in: model.count / 2...model.count, using: &random)
        buffer.truncate(to: count)
        model.removeLast(model.count - count)
      default:
        if Int.random(in: 0..<20, using: &random) == 0 {
          buffer.releaseStorage()
          #expect(buffer.capacity == 0)
          model = []
        }
      }
      guard buffer.count == model.count, step % 16 != 0 || buffer.toArray() == model else {
        Issue.record("step \(step) with seed \(seed)")
        return
      }
    }
  }

  @Test func `consumed memory is reused before more is allocated`() {
    var buffer = ByteBuffer()
    buffer.append([UInt8](repeating: 1, count: 1_000))
    let capacity = buffer.capacity
    for round in 0..<1_000 {
      buffer.append([UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 400))
      buffer.consume(400)
    }
    #expect(buffer.capacity <= 4 * capacity)
    #expect(buffer.toArray().suffix(400).allSatisfy { $0 == UInt8(truncatingIfNeeded: 999) })
  }

  @Test func `filling appends only what was written`() {
    var buffer = ByteBuffer()
    buffer.append("ab")
    let result = unsafe buffer.fill(300) { room in
      #expect(room.count == 300)
      unsafe room.copyBytes(from: [UInt8]("cde".utf8))
      return (written: 3, result: "done")
    }
    #expect(result == "done")
    #expect(buffer.toArray() == Array("abcde".utf8))
    let nothing: Int = unsafe buffer.fill(10) { _ in (written: 0, result: 1) }
    #expect(nothing == 1)
    #expect(buffer.count == 5)
  }

  @Test func `an emptied buffer can be reused`() {
    var buffer = ByteBuffer()
    #expect(buffer.toArray().isEmpty)
    #expect(buffer.withSpan { $0.byteCount } == 0)
    buffer.append("some text")
    buffer.consume(9)
    buffer.append([])
    buffer.append("")
    #expect(buffer.count == 0)
    buffer.append("more")
    buffer.removeAll()
    #expect(buffer.toArray().isEmpty)
    #expect(buffer.capacity > 0)
  }
}
