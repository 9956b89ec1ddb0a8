/// What the server accepts from its clients, and how long it waits for them. `Server.change` changes them while the server runs.
package struct ServerLimits: Sendable {
  /// The maximum `length` of a frame, in bytes; 128 KiB to 1 GiB.
  package var maxFrameBytes = 16 << 20
  /// The maximum number of connections. One more gets an error and is closed.
  package var connections = 10_000
  /// The maximum number of stores.
  package var stores = 1_024
  /// The maximum number of stores that one connection has open; at most 65,535.
  package var openStores = 1_024
  /// The maximum number of unfinished requests of one connection, which are its open reply streams.
  package var requestsInFlight = 1_024
  /// The maximum number of keys or entries in one request.
  package var keysInRequest = 65_536
  /// The maximum number of keys that the open get-many streams of one connection have left to send.
  package var keysInAnswers = 262_144
  /// The size of a store's latest changes, in bytes, that are kept while it is watched, in addition to those of its last commit.
  package var changeBytes = 16 << 20
  /// The size of the replies waiting for one client, in bytes, at which no more of its requests are read. One reply may exceed it.
  package var outputBytes = 1 << 20
  /// The size of the replies waiting for all clients, in bytes, at which the client that has stalled longest is disconnected.
  package var totalOutputBytes = 256 << 20
  /// The size of all clients' incomplete requests, in bytes, at which a client that sends more of them is disconnected with an error.
  package var totalInputBytes = 512 << 20

  /// How long a new connection may take to send its hello.
  package var helloTimeout: Duration = .seconds(5)
  /// How long a connection may stall in the middle of a frame.
  package var frameTimeout: Duration = .seconds(30)
  /// How long a client may leave its replies unread.
  package var writeTimeout: Duration = .seconds(30)
  /// How long a reply stream waits for credit.
  package var answerTimeout: Duration = .seconds(30)
  /// How long a connection may be idle.
  package var idleTimeout: Duration = .seconds(3_600)
  /// How long open reply streams may continue after the server was asked to stop.
  package var shutdownTimeout: Duration = .seconds(5)

  /// The duration at which a wakeup is put into the slow log.
  package var slow: Duration = .milliseconds(10)

  package init() {}

  /// The maximum size of a value, in bytes: its entry record fits into the largest frame together with the longest key.
  var maxValueBytes: Int { maxFrameBytes - 8_192 }
}

extension Duration {
  /// Whole milliseconds, rounded up.
  var milliseconds: UInt64 {
    let (seconds, attoseconds) = components
    return UInt64(max(0, seconds)) * 1_000 + UInt64(max(0, attoseconds) + 999_999_999_999_999) / 1_000_000_000_000_000
  }
}
