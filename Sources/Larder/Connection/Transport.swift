import Basics
import Platform

/// The socket of a connection, from the first attempt to connect to the end.
///
/// Any thread may find that the connection has failed, and host names are resolved on a thread of their own. Both
/// report the result here, and only the event loop acts on it. A plain value; the lock of the connection's state
/// protects it.
struct Transport<Caller: Sendable>: Sendable {
  private(set) var lifecycle: ConnectionStateMachine
  private(set) var socket: SharedSocket?
  /// Counts the changes of the socket's epoll interest.
  private var interestVersion: UInt64 = 0
  /// The end of the connection, for the event loop to act on.
  private(set) var failure: ConnectionFailure<Caller>?
  /// The result of an attempt to connect, for the event loop to act on.
  private var connectResult: ConnectResult?
  private var isResolving = false

  init(_ configuration: LarderClient.Configuration) {
    lifecycle = ConnectionStateMachine(
      backoff: configuration.backoff, attemptMilliseconds: max(1, configuration.connectTimeout.wholeMilliseconds))
  }

  var incarnation: UInt64 { lifecycle.incarnation }
  /// Whether requests can be sent.
  var isUsable: Bool { lifecycle.isReady && failure == nil }

  /// When the event loop has something to do, in milliseconds; `.max` for never.
  var nextTimer: UInt64 { connectResult != nil || failure != nil ? 0 : lifecycle.nextActionTime }

  // MARK: Connecting

  /// Records that a call needs a connection.
  /// - Returns: Whether the event loop must start.
  mutating func requestConnection() -> Bool { lifecycle.requestConnection() }

  /// Returns what the event loop must do about the connection now.
  mutating func nextAction(now: UInt64, hasWaiters: Bool) -> ConnectionStateMachine.Action {
    lifecycle.nextAction(now: now, hasWaiters: hasWaiters)
  }

  /// Records that a thread begins to resolve the host's name.
  /// - Returns: False if an earlier one still does.
  mutating func beginResolving() -> Bool {
    defer { isResolving = true }
    return !isResolving
  }

  /// Records the result of an attempt to connect that another thread made.
  mutating func resolvingFinished(_ result: ConnectResult) {
    isResolving = false
    connectResult = result
  }

  mutating func takeConnectResult() -> ConnectResult? { connectResult.take() }

  /// Whether an incarnation is that of the connection, or of the attempt to connect.
  func isCurrent(_ incarnation: UInt64) -> Bool { lifecycle.incarnation == incarnation && !lifecycle.isClosed }

  /// Takes over the socket of an attempt to connect.
  /// - Returns: False if the attempt was given up.
  mutating func attach(_ socket: SharedSocket, incarnation: UInt64) -> Bool {
    guard isCurrent(incarnation) else { return false }
    self.socket = socket
    return true
  }

  /// Records that the socket is connected.
  mutating func connected() { lifecycle.transportConnected() }

  mutating func handshakeCompleted(now: UInt64) { lifecycle.handshakeCompleted(now: now) }

  /// Returns the change that sets the interest of the socket, or nil if there is no socket.
  mutating func setInterest(isReading: Bool, isWriting: Bool) -> InterestChange? {
    guard let socket else { return nil }
    interestVersion += 1
    var interest: Poll.Interest = isReading ? .reading : []
    if isWriting { interest.insert(.writing) }
    return InterestChange(
      socket: socket, incarnation: lifecycle.incarnation, interest: interest, version: interestVersion)
  }

  // MARK: Ending

  /// Records why the connection is over. An earlier reason prevails.
  mutating func reportFailure(_ failure: ConnectionFailure<Caller>) {
    guard let earlier = self.failure else {
      self.failure = failure
      return
    }
    self.failure = ConnectionFailure(
      reason: earlier.reason, undecodable: earlier.undecodable + failure.undecodable)
  }

  /// Removes and returns the reported failure: the event loop has acted on it.
  mutating func takeFailure() -> ConnectionFailure<Caller>? { failure.take() }

  /// Records that the connection, or the attempt to connect, is over.
  mutating func failed(_ error: LarderError, now: UInt64, hasWaiters: Bool) {
    lifecycle.failed(error, now: now, hasWaiters: hasWaiters)
  }

  mutating func close() { lifecycle.close() }

  /// Removes the socket, if there is one.
  /// - Returns: The change that removes it from epoll.
  mutating func detach() -> InterestChange? {
    guard let socket else { return nil }
    interestVersion += 1
    self.socket = nil
    return InterestChange(socket: socket, incarnation: lifecycle.incarnation, interest: nil, version: interestVersion)
  }
}

/// The result of an attempt to connect.
struct ConnectResult: Sendable {
  let incarnation: UInt64
  let outcome: Outcome

  enum Outcome: Sendable {
    case connected(SharedSocket)
    /// The socket is writable when the attempt is decided.
    case inProgress(SharedSocket)
    case failed(String)
  }
}

/// A socket that several threads use, closed when the last of them releases it.
final class SharedSocket: Sendable {
  let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) {
    self.descriptor = descriptor
  }
}
