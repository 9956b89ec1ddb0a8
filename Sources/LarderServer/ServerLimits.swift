/// What the server takes from its clients, and how long it waits for them.
package struct ServerLimits: Sendable {
  /// The greatest `length` of a frame, in bytes; 128 KiB to 1 GiB.
  package var maxFrameBytes = 16 << 20
  /// Connections at once; one more is told so and closed.
  package var connections = 10_000
  /// Stores that exist at once.
  package var stores = 1_024
  /// Stores that one connection has open; at most 65,535.
  package var openStores = 1_024
  /// Requests of one connection that are not finished: answers of several frames that are open.
  package var requestsInFlight = 1_024
  /// Keys or entries in one multi-key request.
  package var keysInRequest = 65_536
  /// Keys that the open get-many answers of one connection still have to answer.
  package var keysInAnswers = 262_144
  /// Bytes of a store's latest changes that are kept while it is watched, beside those of its last commit.
  package var changeBytes = 16 << 20
  /// Bytes that wait to be sent to one client before no more of its requests are read. One reply may go past it.
  package var outputBytes = 1 << 20
  /// Bytes that wait to be sent to all clients before the one that has stalled longest is dropped.
  package var totalOutputBytes = 256 << 20

  /// Bytes of requests that have not come whole, of all clients, before one that sends more of them is told so and closed.
  package var totalInputBytes = 512 << 20

  /// How long a connection may take to say hello.
  package var helloTimeout: Duration = .seconds(5)
  /// How long a frame may stand still half-sent.
  package var frameTimeout: Duration = .seconds(30)
  /// How long a client may leave its answers unread.
  package var writeTimeout: Duration = .seconds(30)
  /// How long an answer waits for credit.
  package var answerTimeout: Duration = .seconds(30)
  /// How long a connection may be silent.
  package var idleTimeout: Duration = .seconds(3_600)
  /// How long open answers may go on after the server was asked to stop.
  package var shutdownTimeout: Duration = .seconds(5)

  /// How long a worker may be busy before that is put into the slow log.
  package var slow: Duration = .milliseconds(10)

  package init() {}

  /// A value whose entry record fits into the largest frame beside the longest key.
  var maxValueBytes: Int { maxFrameBytes - 8_192 }
}
