import Platform

/// What a thread that has reported an event to a connection's state does after it has released the lock, in the order
/// of the properties.
struct ConnectionActions<Caller: Sendable>: Sendable {
  /// The change of the channel's epoll interest.
  var interest: InterestChange?
  /// The incarnation of the connection whose output this thread must write, because no other thread does; or nil.
  var flushIncarnation: UInt64?
  var eventLoop = EventLoopAction.none
  /// The callers to resume.
  var resumptions: [Resumption] = []
  /// The channel that a new task must read the replies from.
  var reading: SharedChannel?

  struct Resumption: Sendable {
    let caller: Caller
    let reply: CallResult
  }

  /// Whether one of the callers submits its request again.
  var hasReturningCaller: Bool {
    resumptions.contains { resumption in
      switch resumption.reply {
      case .retry, .mustOpenStore: true
      case .empty, .number, .entry, .notFound, .body, .failed: false
      }
    }
  }

  mutating func resume(_ caller: Caller, _ reply: CallResult) {
    resumptions.append(Resumption(caller: caller, reply: reply))
  }

  mutating func resume(_ callers: [Caller], _ reply: @autoclosure () -> CallResult) {
    guard !callers.isEmpty else { return }
    let reply = reply()
    for caller in callers { resume(caller, reply) }
  }
}

/// What the event loop must do.
enum EventLoopAction: Equatable, Sendable {
  case none
  case start
  case wake
  /// Wake the loop unless it checks the connection by this time anyway.
  case wakeBy(UInt64)
}

/// A change of the events that epoll reports for a channel. Of two changes, the one with the higher version wins.
struct InterestChange: Sendable {
  let channel: SharedChannel
  let incarnation: UInt64
  /// What the event loop does when the channel is ready, or nil to remove the channel.
  let use: (receives: Bool, sends: Bool)?
  let version: UInt64
}
