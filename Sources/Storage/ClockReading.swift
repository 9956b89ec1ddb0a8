import Platform

/// One moment on both clocks: files tell expiries by the wall's, a map by one that never goes back.
package struct ClockReading: Sendable {
  /// In milliseconds since 1970.
  package let wall: UInt64
  /// In milliseconds of the clock that the map's callers pass as `now`.
  package let monotonic: UInt64

  package init(wall: UInt64, monotonic: UInt64) {
    self.wall = wall
    self.monotonic = monotonic
  }

  package static var now: ClockReading { ClockReading(wall: wallMilliseconds(), monotonic: monotonicMilliseconds()) }

  /// The time on the map's clock of one on the wall's that isn't past.
  func monotonic(ofWall time: UInt64) -> UInt64 {
    let (sum, overflows) = monotonic.addingReportingOverflow(time - min(time, wall))
    return overflows ? .max : sum
  }

  /// The time on the wall's clock of one on the map's that isn't past.
  func wall(ofMonotonic time: UInt64) -> UInt64 {
    let (sum, overflows) = wall.addingReportingOverflow(time - min(time, monotonic))
    return overflows ? .max : sum
  }
}
