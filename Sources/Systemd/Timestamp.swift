import Glibc

/// The time of an event in the log.
package struct Timestamp {
  private let time: timespec

  init(_ time: timespec) { self.time = time }

  package init(microsecondsSince1970 microseconds: Int) {
    time = timespec(tv_sec: microseconds / 1_000_000, tv_nsec: microseconds % 1_000_000 * 1_000)
  }

  static var now: Timestamp {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(time)
  }

  /// The date and time of RFC 3339 with milliseconds, in UTC, such as `2026-11-23T07:50:05.123Z`.
  package var date: String {
    var (seconds, parts) = unsafe (time.tv_sec, tm())
    unsafe gmtime_r(&seconds, &parts)
    let milliseconds = time.tv_nsec / 1_000_000
    return unsafe "\(parts.tm_year + 1_900)-\(Self.digits(parts.tm_mon + 1))-\(Self.digits(parts.tm_mday))"
      + "T\(Self.time(parts)).\(Self.digits(milliseconds, 3))Z"
  }

  /// The local time of day, such as `08:50:05`.
  var timeOfDay: String {
    var (seconds, parts) = unsafe (time.tv_sec, tm())
    unsafe localtime_r(&seconds, &parts)
    return unsafe Self.time(parts)
  }

  private static func time(_ parts: tm) -> String {
    unsafe [parts.tm_hour, parts.tm_min, parts.tm_sec].map { digits($0) }.joined(separator: ":")
  }

  private static func digits(_ number: some BinaryInteger, _ count: Int = 2) -> String {
    let digits = "\(number)"
    return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
  }
}
