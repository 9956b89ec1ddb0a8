import Wire

extension LarderClient {
  /// How a client behaves. The defaults suit a server on the same machine or network.
  public struct Configuration: Sendable {
    /// How long a call may take in all: waiting for a connection and its turn, and for the reply. See also `with(timeout:)`.
    public var timeout: Duration = .seconds(5)
    /// How many connections calls are spread over, 1 to 64. One carries the calls of many tasks.
    public var connections = 1
    /// The client's name in the server's logs, up to 255 bytes; what is longer is cut.
    public var name = "larder-swift"
    /// Whether calls that only read are sent again by themselves when a connection is lost before their reply.
    public var retriesReads = true
    /// Whether calls wait, within their time, while the server can't be reached. Without, they fail with the first attempt.
    public var waitsForConnection = true
    /// The pause between attempts to connect.
    public var backoff = Backoff()
    /// How long one attempt to connect may take, the server's hello included.
    public var connectTimeout: Duration = .seconds(5)
    /// After how long without a byte from a server that owes replies the connection is taken for dead.
    public var silenceLimit: Duration = .seconds(15)
    /// How many bytes of each answer of several frames the server may send ahead of its reader, at least 65,536.
    public var answerCreditBytes = 262_144
    /// The largest frame that is sent or taken, in bytes, if the server allows as much.
    public var maxFrameBytes = 64 << 20

    public init() {}

    var connectionCount: Int { min(64, max(1, connections)) }
    var credit: Int { min(1 << 30, max(65_536, answerCreditBytes)) }
    var maxFrameSize: Int { min(1 << 31, max(4_096, maxFrameBytes)) }

    var helloName: String {
      var name = name[...]
      while name.utf8.count > ClientHello.maxNameSize { name.removeLast() }
      return String(name)
    }
  }
}
