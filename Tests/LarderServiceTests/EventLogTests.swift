import Glibc
import Testing

@testable import Systemd

struct EventLogTests {
  /// Returns what a log writes to its descriptor.
  private func output(_ form: EventLog.Form, level: LogLevel = .info, _ body: (EventLog) -> Void) -> String {
    var ends: [Int32] = [0, 0]
    _ = unsafe pipe(&ends)
    body(EventLog("larderd", form: form, descriptor: ends[1], level: level))
    close(ends[1])
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let count = unsafe read(ends[0], &buffer, buffer.count)
    close(ends[0])
    return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
  }

  /// Returns what a log writes to a file, without the time of each line.
  private func lines(level: LogLevel = .info, _ body: (EventLog) -> Void) -> String {
    output(.dated, level: level, body).replacing(#/(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /#, with: "")
  }

  @Test func `an event is one line that ends with its fields`() {
    let text = lines { log in
      log.info("opened a store", ["store": "orders", "entries": "5"])
      log.error("can't open")
    }
    #expect(text == "larderd: opened a store store=orders entries=5\nlarderd: error: can't open\n")
  }

  @Test func `each line begins with its priority when the journal reads standard error`() {
    let text = output(.prefixed) { log in
      log.error("a")
      log.warning("b")
      log.notice("c")
      log.info("d")
    }
    #expect(text == "<3>a\n<4>b\n<5>c\n<6>d\n")
  }

  @Test func `each line begins with the time when nothing else adds it`() {
    let file = output(.dated) { $0.info("a") }
    #expect(file.wholeMatch(of: #/20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z larderd: a\n/#) != nil, "\(file)")
    let terminal = output(.timed) { $0.error("a") }
    #expect(terminal.wholeMatch(of: #/\d\d:\d\d:\d\d larderd: error: a\n/#) != nil, "\(terminal)")
    #expect(Timestamp(timespec(tv_sec: 1_792_569_005, tv_nsec: 7_999_999)).date == "2026-10-21T07:50:05.007Z")
  }

  @Test func `a value can't add a line or a field to the log`() {
    let text = lines { $0.info("read\nit", ["path": "/a b\n\"x\"=\u{1B}[2J", "empty": ""]) }
    #expect(text == "larderd: read\\u{a}it path=\"/a b\\u{a}\\\"x\\\"=\\u{1b}[2J\" empty=\"\"\n")
  }

  @Test func `characters that could disguise a value on a terminal are escaped in the log`() {
    let text = lines { $0.info("a", ["x": #"C:\"a"#, "y": "1\u{202E}2\u{2066}3"]) }
    #expect(text == #"larderd: a x="C:\\\"a" y=1\u{202e}2\u{2066}3"# + "\n")
  }

  @Test func `events below the level are omitted`() {
    let text = lines(level: .warning) { log in
      log.notice("left out")
      log.warning("logged")
      log.setLevel(.debug)
      log.debug("logged, too")
    }
    #expect(text == "larderd: warning: logged\nlarderd: logged, too\n")
  }
}
