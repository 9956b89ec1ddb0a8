import Foundation
import Testing
import Wire

/// A vector of `Protocol/vectors/malformed.json`: bytes that a client should not send, and the expected reply.
struct MalformedVector: Decodable {
  struct ExpectedReply: Decodable {
    let code: String
    let outcome: UInt8
    let id: UInt32
    let closes: Bool
  }

  let name: String
  private let hex: String
  let hello: Bool?
  let answer: ExpectedReply

  var bytes: [UInt8] {
    let digits = Array(hex.utf8).map { UInt8(String(UnicodeScalar($0)), radix: 16)! }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  static func all() throws -> [MalformedVector] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = root.appending(path: "Protocol/vectors/malformed.json")
    return try JSONDecoder().decode([MalformedVector].self, from: Data(contentsOf: file))
  }
}

extension ServerTests {
  struct MalformedVectorTests {
    @Test(arguments: [false, true])
    func `every malformed vector gets the specified reply, and other connections are not affected`(_ tcp: Bool) throws {
      let server = try TestServer(stores: ["vectors"], tcp: tcp)
      let witness = try server.connect(store: "vectors")
      for vector in try MalformedVector.all() {
        let client = try vector.hello == false ? TestClient(server.address) : server.connect(store: "vectors")
        try client.send(vector.bytes)
        try check(client, vector)
        #expect(try witness.pings(), "\(vector.name)")
        #expect(try witness.call(Request.make(.count, id: 9)).number == 0, "\(vector.name)")
      }
    }

    /// Sending one byte at a time shows the server every prefix of every invalid frame.
    @Test func `every malformed vector gets the same reply when it is sent byte by byte`() throws {
      let server = try TestServer(stores: ["vectors"])
      let witness = try server.connect(store: "vectors")
      for vector in try MalformedVector.all() where vector.bytes.count < 100 {
        let client = try vector.hello == false ? TestClient(server.address) : server.connect(store: "vectors")
        for byte in vector.bytes {
          // The server may already have closed the connection because of the first bytes.
          guard (try? client.send([byte])) != nil else { break }
          if byte == 0 { #expect(try witness.pings()) }
        }
        try check(client, vector)
      }
      #expect(try witness.call(Request.make(.count, id: 9)).number == 0)
    }

    private func check(_ client: TestClient, _ vector: MalformedVector) throws {
      let reply = try client.receive()
      #expect("\(reply.code)" == vector.answer.code, "\(vector.name): \(reply)")
      #expect(reply.outcome.rawValue == vector.answer.outcome, "\(vector.name): \(reply)")
      #expect(reply.id == vector.answer.id, "\(vector.name): \(reply)")
      #expect(!reply.more)
      if vector.answer.closes {
        #expect(try client.isClosed(), "\(vector.name)")
      } else {
        #expect(try client.pings(), "\(vector.name)")
      }
    }
  }
}
