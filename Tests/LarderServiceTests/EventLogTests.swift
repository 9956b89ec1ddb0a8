import Glibc
import Systemd
import Testing

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

  @Test func `an event is one line that ends with its fields`() {
    let text = output(.plain) { log in
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

  @Test func `no value can add a line or a field`() {
    let text = output(.plain) { $0.info("read\nit", ["path": "/a b\n\"x\"=\u{1B}[2J", "empty": ""]) }
    #expect(text == "larderd: read\\u{a}it path=\"/a b\\u{a}\\\"x\\\"=\\u{1b}[2J\" empty=\"\"\n")
  }

  @Test func `no value can look like another one on a terminal`() {
    let text = output(.plain) { $0.info("a", ["x": #"C:\"a"#, "y": "1\u{202E}2\u{2066}3"]) }
    #expect(text == #"larderd: a x="C:\\\"a" y=1\u{202e}2\u{2066}3"# + "\n")
  }

  @Test func `events below the level are omitted`() {
    let text = output(.plain, level: .warning) { log in
      log.notice("left out")
      log.warning("logged")
      log.setLevel(.debug)
      log.debug("logged, too")
    }
    #expect(text == "larderd: warning: logged\nlarderd: logged, too\n")
  }
}
