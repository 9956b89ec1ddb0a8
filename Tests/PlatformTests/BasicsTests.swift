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

  @Test(arguments: [
    ("0", 0), ("1", 1), ("1024", 1 << 10), ("1KiB", 1 << 10), ("3MiB", 3 << 20), ("1024GiB", 1 << 40),
    ("9223372036854775807", Int.max),
  ])
  func `a size is a number of bytes, KiB, MiB or GiB`(text: String, bytes: Int) {
    let size = ByteSize(text)
    #expect(size?.bytes == bytes && size.flatMap { ByteSize($0.description) } == size)
  }

  @Test(arguments: [
    "", "KiB", "-1", "1.5GiB", "1 MiB", "1M", "1MB", "1mib", "9223372036854775808", "9007199254740992GiB",
  ])
  func `anything else is not a size`(text: String) { #expect(ByteSize(text) == nil) }

  @Test func `a number may contain only digits`() {
    #expect(UInt16(digits: "65535") == 65_535)
    for text in ["", "+1", "-1", " 1", "1a", "65536", "١"] { #expect(UInt16(digits: text[...]) == nil) }
  }
}
