import Testing
import Wire

@testable import LarderServer

/// How requests of HTTP are found in input.
struct HTTPRequestTests {
  private func scan(_ text: String, maxSize: Int = 1 << 20) -> RequestScan<HTTPRequest> {
    unsafe HTTPRequest.scan(Array(text.utf8).span.bytes, at: 0, maxSize: maxSize)
  }

  @Test func `a request is found once it is complete`() throws {
    let text = "PUT /v1/stores/a/entries/k HTTP/1.1\r\nHost: x\r\ncontent-length:\t3 \r\nOther: y\r\n\r\nabc"
    for end in 1..<text.utf8.count {
      guard case .partial(let size) = scan(String(decoding: text.utf8.prefix(end), as: UTF8.self)) else {
        Issue.record("\(end)")
        continue
      }
      #expect(size == (end < text.utf8.count - 3 ? 0 : text.utf8.count), "\(end)")
    }
    guard case .request(let request) = scan(text + "GET") else { throw Missing() }
    #expect(request.size == text.utf8.count && request.method == .put && request.body.count == 3)
    #expect(request.route.resource == .entry && request[.host]?.count == 1 && request[.range] == nil)
  }

  @Test func `a body that is too large is refused before it arrives`() throws {
    guard
      case .invalid(let failure) = scan(
        "PUT /v1/stores/a/entries/k HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n")
    else { throw Missing() }
    #expect(failure.code == .frameLength)
  }

  @Test(arguments: [
    ("/", HTTPRoute.Resource.asset), ("/healthz", .health), ("/v1/stores", .stores), ("/v1/stores?x=1", .stores),
    ("/v1/stores/a", .store), ("/v1/stores/a/", .unknown), ("/v1/stores/a/entries", .entries),
    ("/v1/stores/a/entries/", .entry), ("/v1/stores/a/entries//x", .entry), ("/v1/stores/a/entries/x/y?z", .entry),
    ("/v1/stores/a/indexes/i", .index), ("/v1/stores/a/find/x", .unknown), ("/v1/stats/x", .unknown),
    ("/v1x/stores", .asset),
  ])
  func `a path leads to a resource`(path: String, resource: HTTPRoute.Resource) throws {
    guard case .request(let request) = scan("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n") else { throw Missing() }
    #expect(request.route.resource == resource)
  }

  @Test func `only pages are served to HTTP/1.0`() throws {
    guard case .request(let request) = scan("GET /readyz HTTP/1.0\r\n\r\n") else { throw Missing() }
    #expect(request.isOld && request.isLast)
    for text in ["GET /v1/stores HTTP/1.0\r\nHost: x\r\n\r\n", "GET /readyz HTTP/1.2\r\nHost: x\r\n\r\n"] {
      guard case .invalid = scan(text) else { throw Missing() }
    }
  }

  @Test(arguments: [
    ("close", true), ("Close", true), ("TE, close", true), ("close,TE", true), (",, close ,", true),
    ("keep-alive", false),
    ("closed", false), ("x close", false), ("", false), ("keep-alive\r\nConnection: close", true),
    ("close\r\nConnection: TE", true),
  ])
  func `a connection ends after a request that says so`(fields: String, isLast: Bool) throws {
    guard case .request(let request) = scan("GET / HTTP/1.1\r\nHost: x\r\nConnection: \(fields)\r\n\r\n") else {
      throw Missing()
    }
    #expect(request.isLast == isLast)
  }

  /// Whatever the path and the method, a request is found or refused: nothing that arrives is a broken invariant.
  @Test func `targets of any form are found or refused`() {
    for target in [
      "/", "//", "/?", "/v1", "/v1?", "/v1/", "/v1/stores/", "/v1/stores//", "/v1/stores//entries//", "?", "x", "*", "",
      "http:", "http:/", "http://", "http:///", "http://h", "http://h?", "http://h/", "http://h/v1", "://h",
      "http://h#",
    ] {
      for method in ["GET", "PUT", "DELETE", "OPTIONS", "X"] {
        for version in ["HTTP/1.1", "HTTP/1.0"] {
          if case .request(let request) = scan("\(method) \(target) \(version)\r\nHost: x\r\n\r\n") {
            _ = (request.operation, request.tag, request.route.allowed, request.route.has(request.method))
          }
        }
      }
    }
  }

  @Test func `a date is as RFC 9110 has it`() {
    for (seconds, text) in [
      (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
      (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
      (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
    ] {
      var buffer = ByteBuffer()
      buffer.append(HTTPDate(secondsSince1970: seconds))
      #expect(String(decoding: buffer.toArray(), as: UTF8.self) == text)
    }
  }

  private struct Missing: Error {}
}
