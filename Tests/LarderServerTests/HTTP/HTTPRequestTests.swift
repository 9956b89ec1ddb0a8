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
    #expect(request.isOld && request.closesConnection(RawSpan()))
    for text in ["GET /v1/stores HTTP/1.0\r\nHost: x\r\n\r\n", "GET /readyz HTTP/1.2\r\nHost: x\r\n\r\n"] {
      guard case .invalid = scan(text) else { throw Missing() }
    }
  }

  private struct Missing: Error {}
}
