import Testing

@testable import larder

@Suite struct ProgressTests {
  private func line(_ width: Int, count: Int? = 123_456, done: Int = 50, total: Int? = 100) -> String {
    Progress.line(count, "entries", done: done, total: total, milliseconds: 60_000, width: width)
  }

  @Test func `the progress line shows what fits the terminal`() {
    #expect(line(80) == "████████████░░░░░░░░░░░░ 50%  123,456 entries, 2,057/s, 1m 00s left")
    #expect(line(40) == "██████░░░░░░░ 50%  2,057/s, 1m 00s left")
    #expect(line(24) == "███░░░ 50%  1m 00s left")
    #expect(line(12) == "███░░░░ 50%")
    #expect(line(3) == "50")
    #expect(line(80, total: nil) == "123,456 entries, 2,057/s")
    #expect(line(24, total: nil) == "2,057/s")
    #expect(line(7, count: 123_456_789, total: nil) == "123,45")
    #expect(line(80, count: nil) == "████████████░░░░░░░░░░░░ 50%  1m 00s left")
    #expect(line(80, count: nil, total: nil) == "")
  }

  @Test func `the progress line always fits the terminal`() {
    for width in 1...200 {
      for (count, done) in [(nil, 0), (0, 0), (Int.max / 1_000, 1), (7, 100), (7, 101)] {
        for total in [nil, 100] { #expect(line(width, count: count, done: done, total: total).count < max(1, width)) }
      }
    }
  }
}
