import Storage
import Wire

/// What a connection waits for before any more of its requests are executed, so that its worker need not wait.
///
/// A request that can't be executed yet stays at the front of the connection's input, and is executed afterward. Of a
/// request that has been executed, the reply follows afterward. When the wait is over, the pause's token goes to the
/// worker's mailbox. Meanwhile the connection is not read, and its reply streams rest.
///
/// Requests behind a job that changes entries wait, too, but the connection does not pause: see
/// `Waits`.
enum Pause {
  /// Space for the commit of the next request.
  case space
  /// The name of the client's user, for the refusal of the next request.
  case userName
  /// A reply, or a part of one, with values in files.
  case reply(ValueRead)
  /// A document in a file, which the next part of a stream has fields of.
  case document(ValueRead, handle: UInt32)
  /// A value in a file, which the next request works with.
  case cache
  /// The next request, which is a large write. Its reply follows.
  case write(WriteJob)
  /// The end of another large write to the store of the next request.
  case commit
  /// The request that was executed last, which changes the stores.
  case change(StoreChange)

  /// How long a connection waits for space that does not change, in milliseconds.
  static let spaceMilliseconds: UInt64 = 1_000
  /// How many times one request waits for space while others take it.
  static let maxSpaceWaits = 100
  /// How long a connection waits for a name, in milliseconds.
  static let userNameMilliseconds: UInt64 = 100
}

/// Names a pause to the worker: the connection's pause of that number. It may have ended already.
struct PauseToken {
  let connection: ConnectionToken
  let number: UInt32
}

/// A request whose reply follows after its wakeup: what is recorded of it then.
struct PendingRequest {
  let operation: UInt8
  /// The size of its frame.
  let byteCount: Int
  /// The name of its store; empty if it has none.
  let store: String
  /// When it was executed, in nanoseconds.
  let startTime: UInt64
}
