/// An object that a client notifies of its calls and connections, for logs, metrics and traces.
///
///     var configuration = LarderClient.Configuration()
///     configuration.observers = [SlowCalls()]
///
/// The module `LarderObservability` has observers for swift-log, swift-metrics and swift-distributed-tracing. Every
/// method has an implementation that does nothing. A client calls the methods while calls wait for it, so they must
/// return quickly. Without observers, a client neither reads a clock for them nor makes any of these values.
public protocol ClientObserver: Sendable {
  /// A call begins. Called in the call's task, so that task-local values are those of the caller.
  ///
  /// Calls that a method makes on its own, such as the reads of a transaction, are calls. Opening a store is part of
  /// the call that needs the store.
  /// - Returns: A closure that is called once when the call has ended, in the same task; nil to ignore the call. A call
  ///   whose reply comes in several parts, such as a watch, ends with the first of them.
  func callBegan(_ call: ClientCall) -> (@Sendable (ClientCallResult) -> Void)?

  /// A connection is ready for calls.
  /// - Parameter duration: The time to connect, including the server's hello.
  func connectionOpened(_ connection: ClientConnection, after duration: Duration)

  /// An attempt to connect has failed. The client tries again, after a pause, while calls wait.
  func connectionFailed(_ connection: ClientConnection, error: LarderError)

  /// A connection has ended. The client replaces it when a call needs it.
  /// - Parameter error: Why it was lost; nil if the client was closed.
  func connectionClosed(_ connection: ClientConnection, error: LarderError?)
}

extension ClientObserver {
  public func callBegan(_ call: ClientCall) -> (@Sendable (ClientCallResult) -> Void)? { nil }
  public func connectionOpened(_ connection: ClientConnection, after duration: Duration) {}
  public func connectionFailed(_ connection: ClientConnection, error: LarderError) {}
  public func connectionClosed(_ connection: ClientConnection, error: LarderError?) {}
}

/// A call of a client, as observers see it.
public struct ClientCall: Hashable, Sendable {
  /// The operation's name in the protocol, such as `get` or `get-many`.
  public let operation: String
  /// The store's name; nil for a call that addresses the server.
  public let store: String?
  /// The number of keys, entries or operations that the request names; 1 if it names none.
  public let keyCount: Int
  /// The size of the request's body in bytes. It may be a few bytes too high.
  public let requestBytes: Int
  /// The connection that carries the call.
  public let connection: ClientConnection
}

/// How a call has ended.
public struct ClientCallResult: Hashable, Sendable {
  /// The time from the call's beginning to its end.
  public let duration: Duration
  /// What the call throws; nil if it has succeeded.
  public let error: LarderError?
  /// The number of times that the client has repeated the request by itself.
  public let retries: Int
  /// The size of what the reply carries in bytes: a value, a number, or the reply's first part.
  public let responseBytes: Int
}

/// One of a client's connections. It stays the same when the client connects again.
public struct ClientConnection: Hashable, Sendable {
  /// The number among the client's connections, from 0.
  public let number: Int
  /// The server's address, as in `LarderClient.init`.
  public let address: String
  /// The server's host, or the path of its socket.
  public let host: String
  /// The server's port; nil for a socket with a path.
  public let port: Int?
}
