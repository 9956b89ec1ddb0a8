import TestSupport
import Testing

/// The session of `Protocol/wire.md` §11: the frames of both sides, in order.
private struct DocumentedSession {
  struct Frame {
    let isFromClient: Bool
    /// The bytes; nil for one that varies.
    var bytes: [UInt8?] = []
  }

  private(set) var frames: [Frame] = []

  init() throws {
    let document = try String(contentsOf: ProjectFiles.url("Protocol/wire.md"), encoding: .utf8)
    let section = try #require(document.split(separator: "\n## 11. A session\n").last)
    let lines = section.split(separator: "\n```\n")[1].split(separator: "\n", omittingEmptySubsequences: true)
    for line in lines {
      if line.first == "C" || line.first == "S" { frames.append(Frame(isFromClient: line.first == "C")) }
      let hex = line.dropFirst().prefix { $0 != ";" }
      for byte in hex.split(separator: " ") {
        let value: UInt8? = UInt8(byte, radix: 16)
        #expect(value != nil || byte == "..", "\(line)")
        frames[frames.count - 1].bytes.append(value)
      }
    }
  }
}

extension ServerTests {
  struct DocumentedSessionTests {
    @Test func `the documented session is what a server says`() throws {
      let session = try DocumentedSession()
      #expect(session.frames.count == 22)
      let server = try TestServer(stores: ["demo"])
      let client = try TestClient(server.address)
      for frame in session.frames {
        if frame.isFromClient {
          try client.send(frame.bytes.compactMap(\.self))
        } else {
          let received = try client.receive(byteCount: frame.bytes.count)
          let documented = zip(frame.bytes, received).map { $0 ?? $1 }
          #expect(received.hexadecimal == documented.hexadecimal)
        }
      }
      #expect(try client.isClosed())
    }
  }
}

extension [UInt8] {
  fileprivate var hexadecimal: String {
    map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined(separator: " ")
  }
}
