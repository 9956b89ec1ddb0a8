import Testing

@testable import larder

@Suite struct `Text on a terminal` {
  @Test(arguments: [
    ("plain größe 漢字 👩‍👩‍👧", "plain größe 漢字 👩‍👩‍👧"), ("\u{1B}[2J", #"\u001b[2J"#), ("a\nb\tc\r", #"a\nb\tc\r"#),
    ("\u{9B}31m\u{7F}\0", #"\u009b31m\u007f\u0000"#), ("\u{202E}evil\u{2066}\u{2028}", #"\u202eevil\u2066\u2028"#),
    ("a\u{200B}b\u{FEFF}\u{AD}\u{61C}\u{E0041}\u{3164}", #"a\u200bb\ufeff\u00ad\u061c\ue0041\u3164"#), ("", ""),
  ]) func `text on a terminal contains no control characters`(text: String, visible: String) {
    #expect(EscapedText.line(text) == visible)
    #expect(EscapedText.line(visible) == visible)
  }

  @Test func `what a server says is one harmless line`() {
    #expect(LarderCommand.oneLine("a\u{1B}[2J\r\n\u{202E}b\u{200B}") == #"a [2J \u202eb\u200b"#)
  }

  @Test func `a link to the console has nothing that a terminal or a shell would act upon`() throws {
    let link = "https://localhost:7480/#link=ldr_AZaz09_-"
    #expect(try ConsoleLink.checked(link) == link)
    for link in [
      "", "file:///etc/passwd", "javascript:alert(1)", "http://a\u{1B}[2J", "http://a\u{202E}b", "http://a b",
      "http://a\nb", "http://ä", "-http://a",
    ] {
      #expect(throws: CommandFailure.self) { try ConsoleLink.checked(link) }
    }
  }

  @Test func `text on a terminal shows invalid bytes`() {
    #expect(EscapedText.line([0x89, 0x50, 0x4E]) == #"\x89PN"#)
    #expect(EscapedText.line([0x9B, 0x33]) == #"\x9b3"#)
    #expect(EscapedText.line([0xE6, 0xBC]) == #"\xe6\xbc"#)
    #expect(EscapedText.line([0xED, 0xA0, 0x80, 0x41]) == #"\xed\xa0\x80A"#)
    #expect(EscapedText.line([0x61, 0xC2]) == #"a\xc2"#)
  }

  @Test func `text on a terminal is harmless and complete for any bytes`() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = Shuffle(state: seed)
    for _ in 0..<1_000 {
      let bytes = (0..<40).map { _ in UInt8.random(in: 0 ... .max, using: &random) }
      let lines = EscapedText.lines(bytes)
      #expect(
        lines.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control || $0 == "\n" || $0 == "\t" },
        "seed \(seed)")
      let plain = bytes.filter { (0x20...0x7E).contains($0) }
      #expect(EscapedText.line(bytes).utf8.count >= plain.count, "seed \(seed): \(bytes)")
    }
  }

  @Test(arguments: [
    ("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("漢字漢字", 8, "漢字漢字"), ("漢字漢字", 7, "漢字漢…"),
    ("漢字漢字", 6, "漢字…"), ("e\u{301}e\u{301}e\u{301}", 3, "e\u{301}e\u{301}e\u{301}"), ("abc", 1, "…"), ("abc", 0, ""),
  ]) func `text on a terminal is cut to a width`(text: String, columns: Int, cut: String) {
    #expect(EscapedText.cut(text, to: columns) == cut)
    #expect(EscapedText.width(cut) <= columns)
  }
}

@Suite struct `A table` {
  private func table(_ rows: [[String]]) -> Table {
    var table = Table("KEY", "REVISION", "VALUE")
    for row in rows { table.add(row) }
    return table
  }

  @Test func `a table has aligned columns, with numbers on the right`() {
    #expect(
      table([["a", "7", "x"], ["漢字", "12", "y"]]).text(width: 80) == """
        KEY   REVISION  VALUE
        a            7  x
        漢字        12  y
        """)
  }

  @Test func `a table shrinks its widest column`() {
    let text = table([["short", "1", String(repeating: "v", count: 100)]]).text(width: 40)
    #expect(text.hasSuffix("\nshort         1  \(String(repeating: "v", count: 22))…"))
    let both = table([[String(repeating: "k", count: 100), "1", String(repeating: "v", count: 100)]]).text(width: 40)
    #expect(both.split(separator: "\n").map { EscapedText.width(String($0)) }.max()! <= 40)
    #expect(both.contains("kkkk…  ") && both.contains("vvvv…"))
  }

  @Test func `a table printed in parts keeps its columns`() {
    var table = table([["a", "7", "x"], ["bcd", "12", "y"]])
    #expect(
      table.takeText(width: 80) == """
        KEY  REVISION  VALUE
        a           7  x
        bcd        12  y
        """)
    table.add("e", "-", "z")
    table.add("fghij", "123456789", "z")
    #expect(
      table.takeText(width: 80) == """
        e              -  z
        fghij  123456789  z
        """)
    table.add("k", "1", "z")
    #expect(table.takeText(width: 80) == "k              1  z")
    #expect(table.takeText(width: 80) == "")
  }

  @Test func `a table cuts text before numbers`() {
    var table = Table("NAME", "MEMORY", "LOG")
    table.add("a-long-name", "1023.9 MiB", "12.5 KiB")
    table.add("b", "–", "")
    #expect(
      table.text(width: 30) == """
        NAME          MEMORY       LOG
        a-long-…  1023.9 MiB  12.5 KiB
        b                  –
        """)
  }

  @Test func `a table omits its least important columns before it cuts numbers`() {
    var table = Table(header: ["NAME", "READS", "WRITES", "LOG"], omissible: ["LOG", "READS", "WRITES"])
    table.add("a-long-name", "1234567", "2345678", "3456789")
    func lines(_ width: Int) -> [String] { table.text(width: width).split(separator: "\n").map(String.init) }
    #expect(lines(.max)[1] == "a-long-name  1234567  2345678  3456789")
    #expect(lines(35)[1] == "a-long-…  1234567  2345678  3456789")
    #expect(lines(34) == ["NAME           READS   WRITES", "a-long-name  1234567  2345678"])
    #expect(lines(25) == ["NAME          WRITES", "a-long-name  2345678"])
    #expect(lines(16) == ["NAME", "a-long-name"])
    #expect(lines(5) == ["NAME", "a-lo…"])
  }

  @Test func `names that begin alike are not cut`() {
    var table = Table(header: ["STATISTIC", "VALUE", ""], omissible: [""], uncut: ["STATISTIC", "VALUE"])
    for name in ["request_p50_nanoseconds", "request_p99_nanoseconds"] { table.add(name, "12345678", "12.3 ms") }
    for width in [10, 20, 40, 80] {
      let names = table.text(width: width).split(separator: "\n").map { $0.split(separator: " ")[0] }
      #expect(names == ["STATISTIC", "request_p50_nanoseconds", "request_p99_nanoseconds"])
    }
  }

  @Test(arguments: [20, 40, 80, 200]) func `a table fits the terminal whatever it contains`(width: Int) {
    let pieces = ["\u{1B}[1m", "漢", "a", "\n", "\u{9B}", "e\u{301}", "👩‍👩‍👧", "\u{202E}", "\0", "word "]
    let seed = UInt64.random(in: 0 ... .max)
    var random = Shuffle(state: seed)
    for _ in 0..<100 {
      let rows = (0..<5).map { _ in
        [
          (0..<Int.random(in: 0...50, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined(), "7",
          (0..<Int.random(in: 0...500, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined(),
        ]
      }
      let lines = table(rows).text(width: width).split(separator: "\n", omittingEmptySubsequences: false)
      #expect(lines.count == 6, "seed \(seed)")
      #expect(
        lines.allSatisfy {
          EscapedText.width(String($0)) <= width && EscapedText.line(String($0)) == String($0)
        })
    }
  }
}
