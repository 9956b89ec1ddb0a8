import Testing

@testable import larder

@Suite struct AlternateScreenTests {
  @Test func `text from the server can't control the terminal, and takes one row`() {
    let page = AlternateScreen.page(["(!) \u{1B}[2J\u{1B}]0;owned\u{07}\r\n\u{9B}31m", "next"], width: 80, height: 24)
    #expect(
      page == "\u{1B}[H(!) \\u001b[2J\\u001b]0;owned\\u0007\\r\\n\\u009b31m\u{1B}[K\r\nnext\u{1B}[K\r\n\u{1B}[J")
  }

  @Test func `a full row keeps its last character, and characters are cut by their width`() {
    #expect(AlternateScreen.page(["12345", "123456"], width: 5, height: 2) == "\u{1B}[H12345\r\n1234…")
    #expect(AlternateScreen.page(["日本語", "日本"], width: 5, height: 3) == "\u{1B}[H日本…\r\n日本\u{1B}[K\r\n\u{1B}[J")
    #expect(AlternateScreen.page(["1", "2", "3"], width: 5, height: 2) == "\u{1B}[H1\u{1B}[K\r\n2\u{1B}[K")
  }
}
