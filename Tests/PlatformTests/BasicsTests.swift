import Basics
import Testing

struct BasicsTests {
  @Test(
    arguments: [
      (.zero, 0), (.seconds(-1), 0), (.nanoseconds(-1), 0), (.nanoseconds(1), 1), (.milliseconds(1), 1),
      (.microseconds(1_001), 2), (.milliseconds(1_999), 1_999), (.seconds(2) + .nanoseconds(1), 2_001),
      (.milliseconds(Int64(1) << 53), 1 << 53), (.seconds(Int64.max), 1 << 53),
    ] as [(Duration, UInt64)])
  func `milliseconds are rounded up, so that no timeout fires early`(_ duration: Duration, _ milliseconds: UInt64) {
    #expect(duration.wholeMilliseconds == milliseconds)
  }

  @Test func `a number may contain only digits`() {
    #expect(UInt16(digits: "65535") == 65_535)
    for text in ["", "+1", "-1", " 1", "1a", "65536", "١"] { #expect(UInt16(digits: text[...]) == nil) }
  }
}
