import TestSupport
import Testing
import Wire

/// A vector of `Protocol/vectors/malformed.json`: bytes that a client should not send, and the expected reply.
struct MalformedVector: Decodable {
  private struct ExpectedReply: Decodable {
    private let code: String
    private let outcome: UInt8
    private let id: UInt32
    private let closes: Bool

    /// Checks that the client receives this reply, and that the connection then has the expected state.
    func check(_ client: TestClient, _ name: String) throws {
      let reply = try client.receive()
      #expect("\(reply.code)" == code, "\(name): \(reply)")
      #expect(reply.outcome.rawValue == outcome, "\(name): \(reply)")
      #expect(reply.id == id, "\(name): \(reply)")
      #expect(!reply.more)
      #expect(!reply.message.isEmpty || reply.code == .notFound, "\(name)")
      if closes {
        #expect(try client.isClosed(), "\(name)")
      } else {
        #expect(try client.pings(), "\(name)")
      }
    }
  }

  let name: String
  private let hex: String
  private let hello: Bool?
  private let answer: ExpectedReply

  static func all() throws -> [MalformedVector] { try ProjectFiles.vectors("malformed.json") }

  var bytes: [UInt8] { [UInt8](hex: hex) }

  /// Connects a client that sends a hello, unless the vector is about its absence.
  func connect(to server: TestServer) throws -> TestClient {
    try hello == false ? TestClient(server.address) : server.connect(store: "vectors")
  }

  /// Checks the reply that a client receives after it has sent the bytes.
  func checkReply(_ client: TestClient) throws { try answer.check(client, name) }
}

extension ServerTests {
  struct MalformedVectorTests {
    @Test(arguments: [false, true])
    func `every malformed vector gets the specified reply, and other connections are not affected`(_ tcp: Bool) throws {
      let server = try TestServer(stores: ["vectors"], tcp: tcp)
      let witness = try server.connect(store: "vectors")
      for vector in try MalformedVector.all() {
        let client = try vector.connect(to: server)
        try client.send(vector.bytes)
        try vector.checkReply(client)
        #expect(try witness.pings(), "\(vector.name)")
        #expect(try witness.call(Request.make(.count, id: 9)).number == 0, "\(vector.name)")
      }
    }

    /// Sending one byte at a time shows the server every prefix of every invalid frame.
    @Test func `every malformed vector gets the same reply when it is sent byte by byte`() throws {
      let server = try TestServer(stores: ["vectors"])
      let witness = try server.connect(store: "vectors")
      for vector in try MalformedVector.all() where vector.bytes.count < 100 {
        let client = try vector.connect(to: server)
        for byte in vector.bytes {
          // The server may already have closed the connection because of the first bytes.
          guard (try? client.send([byte])) != nil else { break }
          if byte == 0 { #expect(try witness.pings()) }
        }
        try vector.checkReply(client)
      }
      #expect(try witness.call(Request.make(.count, id: 9)).number == 0)
    }
  }
}
