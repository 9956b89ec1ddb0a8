import Glibc
import Testing

@testable import Platform

struct ClockTests {
  @Test(arguments: [(0, 0, 0), (1, 999_999, 1_000), (1, 999_999_999, 1_999), (-1, 999_999_999, 0), (.min, 0, 0)])
  func `a clock before 1970 counts as 1970`(seconds: Int, nanoseconds: Int, milliseconds: UInt64) {
    #expect(wallMilliseconds(at: timespec(tv_sec: seconds, tv_nsec: nanoseconds)) == milliseconds)
  }
}
