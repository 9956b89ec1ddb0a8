/// A time as the fields of HTTP have it, in UTC: RFC 9110 §5.6.7.
struct HTTPDate {
  let dayOfWeek: StaticString
  let day: Int
  /// With spaces around it.
  let month: StaticString
  let year: Int
  let hour: Int
  let minute: Int
  let second: Int

  init(secondsSince1970 seconds: Int) {
    let (days, time) = seconds.quotientAndRemainder(dividingBy: 86_400)
    (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60)
    dayOfWeek =
      switch days % 7 {
      case 0: "Thu"
      case 1: "Fri"
      case 2: "Sat"
      case 3: "Sun"
      case 4: "Mon"
      case 5: "Tue"
      default: "Wed"
      }
    // In years that begin in March, a leap day is the last day. 719,468 days are from March of year 0 to 1970, 146,097 are
    // 400 years, and 153 are five months.
    let (era, dayOfEra) = (days + 719_468).quotientAndRemainder(dividingBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthOfYear = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * monthOfYear + 2) / 5 + 1
    year = era * 400 + yearOfEra + (monthOfYear < 10 ? 0 : 1)
    month =
      switch monthOfYear {
      case 0: " Mar "
      case 1: " Apr "
      case 2: " May "
      case 3: " Jun "
      case 4: " Jul "
      case 5: " Aug "
      case 6: " Sep "
      case 7: " Oct "
      case 8: " Nov "
      case 9: " Dec "
      case 10: " Jan "
      default: " Feb "
      }
  }
}
