import Platform

/// One point in time on both clocks: files record expiries by the wall clock, a map by a clock that never goes back.
package struct ClockReading: Sendable {
  /// The wall clock, in milliseconds since 1970.
  package let wall: UInt64
  /// The clock that callers of the map pass as `now`, in milliseconds.
  package let monotonic: UInt64

  package init(wall: UInt64, monotonic: UInt64) {
    self.wall = wall
    self.monotonic = monotonic
  }

  package static var now: ClockReading { ClockReading(wall: wallMilliseconds(), monotonic: monotonicMilliseconds()) }

  /// Converts a time on the wall clock to the map's clock. A time in the past becomes now.
  func monotonic(ofWall time: UInt64) -> UInt64 {
    let (sum, overflows) = monotonic.addingReportingOverflow(time - min(time, wall))
    return overflows ? .max : sum
  }

  /// Converts a time on the map's clock to the wall clock. A time in the past becomes now.
  func wall(ofMonotonic time: UInt64) -> UInt64 {
    let (sum, overflows) = wall.addingReportingOverflow(time - min(time, monotonic))
    return overflows ? .max : sum
  }
}
