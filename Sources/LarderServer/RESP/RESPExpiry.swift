import Glibc
import Platform
import Synchronization

/// When an entry expires, as a command says it.
struct RESPExpiry {
  enum Unit: Int {
    case milliseconds = 1
    case seconds = 1_000
  }

  /// Nil if it was no number.
  private let number: Int?
  private let unit: Unit
  private let isAbsolute: Bool

  /// - Parameter text: A number of units from now, or since 1970.
  init(_ text: RawSpan, _ unit: Unit, isAbsolute: Bool) {
    (number, self.unit, self.isAbsolute) = (text.decimalNumber, unit, isAbsolute)
  }

  /// Whether it was given by the same option.
  func hasUnit(_ unit: Unit, isAbsolute: Bool) -> Bool { unit == self.unit && isAbsolute == self.isAbsolute }

  /// Returns what an option means.
  static func unit(_ option: RawSpan) -> (Unit, isAbsolute: Bool)? {
    if option.isWord("EX") { return (.seconds, false) }
    if option.isWord("PX") { return (.milliseconds, false) }
    if option.isWord("EXAT") { return (.seconds, true) }
    if option.isWord("PXAT") { return (.milliseconds, true) }
    return nil
  }

  /// Returns the time on the clock of a map, in milliseconds. It isn't after `now` if it has passed.
  /// - Parameters:
  ///   - command: The name of the command, for the message.
  ///   - permitsPast: Whether a time that has passed is valid.
  func mapTime(now: UInt64, of command: String, permitsPast: Bool = false) throws(RESPFailure) -> UInt64 {
    guard let number else { throw .notAnInteger }
    let (milliseconds, overflows) = number.multipliedReportingOverflow(by: unit.rawValue)
    let invalid = RESPFailure.error("ERR invalid expire time in '\(command)' command")
    guard !overflows, permitsPast || number > 0 else { throw invalid }
    let (time, isOutOfRange) = milliseconds.addingReportingOverflow(isAbsolute ? -WallClock.offset : Int(now))
    if isOutOfRange, isAbsolute, number < 0 { return 1 }
    guard !isOutOfRange, time <= Int(now) + RESPRun.maxLifetime else { throw invalid }
    // 0 is for entries that don't expire.
    return UInt64(max(1, time))
  }
}

/// The time since 1970 and the clock of expiries.
///
/// Their difference is measured once, so that a client that sets a time gets the same time back, and again when somebody
/// has set the clock of the machine.
enum WallClock {
  private static let difference = Atomic(measured())
  /// What counts as a clock that was set, in milliseconds.
  private static let tolerance = 100

  /// What is to be added to a time of the clock of expiries, in milliseconds.
  static var offset: Int {
    let (current, known) = (measured(), difference.load(ordering: .relaxed))
    guard abs(current - known) > tolerance else { return known }
    difference.store(current, ordering: .relaxed)
    return current
  }

  /// Microseconds since 1970.
  static func microseconds() -> Int {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
  }

  /// Rounded down, so that no lifetime seems longer than what was set.
  private static func measured() -> Int { (microseconds() - Int(monotonicNanoseconds() / 1_000)) / 1_000 }
}
