/// Recognizes the protocol of another server that listens where larderd was expected.
package enum ForeignProtocol {
  /// The first bytes of what servers send, and what the server is.
  private static let greetings: [(start: String, name: String)] = [
    ("HTTP/", "an HTTP server"), ("-ERR", "a Redis server"), ("-NOAUTH", "a Redis server"),
    ("-DENIED", "a Redis server"), ("+PONG", "a Redis server"), ("+OK", "a Redis server"), ("SSH-", "an SSH server"),
  ]

  /// Returns what a server is, for people; nil if its first bytes don't tell.
  package static func server(sending bytes: RawSpan) -> String? {
    greetings.first { greeting in
      let start = greeting.start.utf8
      return start.count <= bytes.byteCount
        && zip(start, 0...).allSatisfy { unsafe bytes.unsafeLoad(fromByteOffset: $1, as: UInt8.self) == $0 }
    }?.name
  }
}
