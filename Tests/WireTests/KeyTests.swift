import TestSupport
import Testing
import Wire

struct KeyTests {
  /// Returns whether the bytes are a valid key, according to the table of well-formed UTF-8 in the Unicode standard
  /// (3.9, table 3-7).
  private func isKey(_ bytes: [UInt8]) -> Bool {
    guard (1...4_096).contains(bytes.count) else { return false }
    var offset = 0
    while offset < bytes.count {
      let (first, rest) = (bytes[offset], bytes[(offset + 1)...])
      let size: Int
      let second: ClosedRange<UInt8>
      switch first {
      case 0...0x7F: (size, second) = (1, 0...0)
      case 0xC2...0xDF: (size, second) = (2, 0x80...0xBF)
      case 0xE0: (size, second) = (3, 0xA0...0xBF)
      case 0xE1...0xEC, 0xEE...0xEF: (size, second) = (3, 0x80...0xBF)
      case 0xED: (size, second) = (3, 0x80...0x9F)
      case 0xF0: (size, second) = (4, 0x90...0xBF)
      case 0xF1...0xF3: (size, second) = (4, 0x80...0xBF)
      case 0xF4: (size, second) = (4, 0x80...0x8F)
      default: return false
      }
      guard rest.count >= size - 1 else { return false }
      if size > 1 {
        guard second.contains(rest[offset + 1]) else { return false }
        guard rest.dropFirst().prefix(size - 2).allSatisfy({ (0x80...0xBF).contains($0) }) else { return false }
      }
      offset += size
    }
    return true
  }

  private func isValid(_ bytes: [UInt8]) -> Bool { bytes.isKey }

  @Test func `a key has from 1 to 4,096 bytes`() {
    #expect(!isValid([]))
    for size in [1, 2, 7, 8, 9, 15, 16, 17, 4_095, 4_096] {
      #expect(isValid([UInt8](repeating: 0x6B, count: size)))
    }
    #expect(!isValid([UInt8](repeating: 0x6B, count: 4_097)))
    #expect(!isValid([UInt8](repeating: 0x6B, count: 70_000)))
  }

  @Test func `keys of up to two bytes are accepted exactly if they are UTF-8, also after ASCII`() {
    for first in UInt8.min...UInt8.max {
      for lead in [0, 7] {
        let head = [UInt8](repeating: 0x61, count: lead)
        #expect(isValid(head + [first]) == isKey(head + [first]))
        // After ASCII, every seventh is enough.
        for second in stride(from: 0, through: UInt8.max, by: lead == 0 ? 1 : 7) {
          let bytes = head + [first, second]
          if isValid(bytes) != isKey(bytes) { Issue.record("\(bytes)") }
        }
      }
    }
  }

  @Test func `keys of three and four bytes are accepted exactly if they are UTF-8`() {
    let edges: [UInt8] = [0, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
    for first in 0xE0...UInt8.max {
      for second in edges {
        for third in edges {
          for fourth in edges {
            for bytes in [[first, second, third], [first, second, third, fourth]]
            where isValid(bytes) != isKey(bytes) {
              Issue.record("\(bytes)")
            }
          }
        }
      }
    }
  }

  @Test func `random keys are accepted exactly if they are UTF-8`() {
    let seed = UInt64.random(in: 1...999_999)
    var random = SeededGenerator(seed: seed)
    for _ in 0..<3_000 {
      var bytes = Array("Schlüssel/ключ/鍵/🔑/".utf8)
      bytes = Array(bytes[..<Int.random(in: 1...bytes.count, using: &random)])
      if Bool.random(using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      #expect(isValid(bytes) == isKey(bytes), "\(bytes), seed \(seed)")
    }
  }
}

struct ListValueTests {
  @Test(
    arguments: [[], [[]], [[1]], [[], [], []], [[1, 2], [], [3]], [[UInt8](repeating: 7, count: 70_000)]] as [[[UInt8]]]
  )
  func `decoding returns the encoded elements`(_ elements: [[UInt8]]) {
    let value = ListValue.encode(elements)
    #expect(value.isListValue)
    #expect(value.elements == elements)
  }

  @Test func `a value that is cut inside an element is not a list`() {
    let value = ListValue.encode([[1, 2, 3], [], [4]])
    let whole: Set<Int> = [0, 7, 11, 16]
    for size in 0...value.count {
      let cut = Array(value[..<size])
      #expect(cut.isListValue == whole.contains(size))
      #expect((cut.elements != nil) == whole.contains(size))
    }
  }

  @Test func `a value with an element larger than the rest isn't a list`() {
    for size: [UInt8] in [[0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 0x80], [0xFC, 0xFF, 0xFF, 0xFF]] {
      #expect(!(size + [1, 2, 3, 4]).isListValue)
      #expect((size + [1, 2, 3, 4]).elements == nil)
    }
  }
}
