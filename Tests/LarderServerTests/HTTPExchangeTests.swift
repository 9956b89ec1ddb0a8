import Testing

@testable import LarderServer

@Suite struct HTTPExchangeTests {
  private func step(_ text: String) -> HTTPExchange.Step {
    var exchange = HTTPExchange()
    return exchange.receive(Array(text.utf8))
  }

  @Test func `a request is understood however it is cut`() {
    let request = Array("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept:text/plain\r\n\r\n".utf8)
    for cut in 0..<request.count {
      var exchange = HTTPExchange()
      #expect(exchange.receive(request[..<cut]) == .incomplete)
      #expect(exchange.receive(request[cut...]) == .get("/metrics"))
    }
    #expect(step("GET / HTTP/1.0\r\n\r\n") == .get("/"))
    #expect(step("GET /a HTTP/1.1\r\nContent-Length: 0\r\n\r\nwhatever follows") == .get("/a"))
  }

  @Test func `anything else is refused`() {
    let refused: [(request: String, status: HTTPExchange.Status)] = [
      ("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", .notAllowed),
      ("HEAD / HTTP/1.1\r\n\r\n", .notAllowed),
      ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n", .badRequest),
      ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", .badRequest),
      ("GET / HTTP/2\r\n\r\n", .versionNotSupported),
      ("GET  / HTTP/1.1\r\n\r\n", .badRequest), ("GET http://a/ HTTP/1.1\r\n\r\n", .badRequest),
      ("GET /\r\n\r\n", .badRequest), ("\r\n\r\n", .badRequest), ("GET / HTTP/1.1\r\nno colon\r\n\r\n", .badRequest),
      ("GET / HTTP/1.1\r\nA : b\r\n\r\n", .badRequest), ("GET / HTTP/1.1\r\n: b\r\n\r\n", .badRequest),
      ("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", .badRequest), ("GET /\0 HTTP/1.1\r\n\r\n", .badRequest),
      ("GET /é HTTP/1.1\r\n\r\n", .badRequest),
      ("GET / HTTP/1.1\r\nA: \(String(repeating: "a", count: 8_192))\r\n\r\n", .tooLong),
      (String(repeating: "a", count: 8_193), .tooLong),
    ]
    for (request, status) in refused { #expect(step(request) == .refused(status), "\(request.prefix(40))") }
  }
}
