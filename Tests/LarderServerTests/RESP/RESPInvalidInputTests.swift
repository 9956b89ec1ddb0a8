import TestSupport
import Testing

@testable import LarderServer

extension ServerTests {
  /// Bytes that are no requests, or almost.
  @Suite struct RESPInvalidInputTests {
    private static let pieces = [
      "*", "$", "\r\n", "\n", "1", "2", "3", "-1", "0", "999", "GET", "SET", "MGET", "EXEC", "MULTI", "a", " ", "\"",
      "'",
      "*1\r\n$4\r\nPING\r\n", "*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n", "\\x41",
      "\u{0}",
      "*4\r\n$4\r\nSCAN\r\n$1\r\n0\r\n$5\r\nMATCH\r\n$2\r\n[a\r\n", "*8\r\n", "KEYS [\r\n", "INCRBYFLOAT a 1e400\r\n",
    ]

    private static func stream(_ random: inout SeededGenerator) -> [UInt8] {
      var bytes = (0..<Int.random(in: 1...24, using: &random)).flatMap { _ in
        Array(pieces.randomElement(using: &random)!.utf8)
      }
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      return bytes
    }

    @Test func `any bytes are requests within them, the beginning of one, or an error`() {
      var random = SeededGenerator.announced()
      for _ in 0..<20_000 {
        let stream = Self.stream(&random)
        let bytes = unsafe stream.span.bytes
        var position = 0
        scan: while true {
          switch RESPRequest.scan(bytes, at: position, maxSize: 10_000) {
          case .partial(let size):
            #expect(size == 0 || size > stream.count - position, "\(stream)")
            break scan
          case .invalid: break scan
          case .request(let request):
            let end = position + request.size
            #expect(request.size > 0 && end <= stream.count, "\(stream)")
            let body = bytes.extracting(request.body(at: position))
            if !request.isLine, request.count > 0 {
              var (words, last, count) = (request.words(from: 0, body), 0, 0)
              while let word = words.next(body) {
                #expect(word == request.word(count, body) && word.lowerBound >= last, "\(stream)")
                #expect(word.upperBound <= request.size - 2, "\(stream)")
                (last, count) = (word.upperBound, count + 1)
              }
              #expect(count == request.count, "\(stream)")
              // Every beginning of it is incomplete, and announces no more than there is.
              for cut in 1..<request.size {
                guard case .partial(let size) = RESPRequest.scan(body.extracting(0..<cut), at: 0, maxSize: 10_000)
                else {
                  Issue.record("\(cut) bytes of \(stream)")
                  continue
                }
                #expect(size <= request.size, "\(cut) bytes of \(stream)")
              }
            } else if request.isLine {
              _ = RESPLine.request(in: body)
            }
            position = end
          }
        }
      }
    }

    @Test(arguments: [
      ["MSET", "a", "b"], ["PUBLISH"], ["SET", "a", "IFEQ"], ["no command"], ["EVAL", "0"],
    ])
    func `large words that arrive in parts are one request`(_ words: [String]) throws {
      var random = SeededGenerator.announced()
      let server = try TestServer(speaking: .resp)
      for _ in 0..<20 {
        let sizes = [32_768, 65_536, 100_000].map { $0 + Int.random(in: -9...9, using: &random) }
        let large = sizes.map { [UInt8](repeating: 0x78, count: $0) }
        let request = TestClient.encoded(zip(words, large).flatMap { [Array($0.utf8), $1] } + [large[2]])
        let client = try TestClient(server.address)
        let part = Int.random(in: 10_000...30_000, using: &random)
        for start in stride(from: 0, to: request.count, by: part) {
          try client.send(Array(request[start..<min(start + part, request.count)]))
        }
        _ = try client.reply()
        #expect(try client.call("PING") == .simple("PONG"))
      }
    }

    @Test func `no bytes end the server, and others are served`() throws {
      var random = SeededGenerator.announced()
      let server = try TestServer(speaking: .resp)
      for _ in 0..<500 {
        let client = try TestClient(server.address)
        try client.send(Self.stream(&random))
        if Bool.random(using: &random) { try? client.send(Self.stream(&random)) }
      }
      #expect(try TestClient(server.address).call("PING") == .simple("PONG"))
    }
  }
}
