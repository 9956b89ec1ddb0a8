import Testing

@testable import larder

@Suite struct ScreenTests {
  @Test func `what a server says steers no terminal, and takes a row`() {
    let page = Screen.page(["(!) \u{1B}[2J\u{1B}]0;owned\u{07}\r\n\u{9B}31m", "next"], width: 80, height: 24)
    #expect(
      page == "\u{1B}[H(!) \\u001b[2J\\u001b]0;owned\\u0007\\r\\n\\u009b31m\u{1B}[K\r\nnext\u{1B}[K\r\n\u{1B}[J")
  }

  @Test func `a row that is full keeps its last character, and characters are cut by their columns`() {
    #expect(Screen.page(["12345", "123456"], width: 5, height: 2) == "\u{1B}[H12345\r\n1234…")
    #expect(Screen.page(["日本語", "日本"], width: 5, height: 3) == "\u{1B}[H日本…\r\n日本\u{1B}[K\r\n\u{1B}[J")
    #expect(Screen.page(["1", "2", "3"], width: 5, height: 2) == "\u{1B}[H1\u{1B}[K\r\n2\u{1B}[K")
  }
}
