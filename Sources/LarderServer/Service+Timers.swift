import Basics
import Wire

/// What time brings to an end: `Protocol/wire.md` §9. Nothing is timed a request: the sweep looks at what each connection last did, and
/// runs no earlier than the first of them could be due.
extension Service {
  private enum Reason {
    case noHello, frameStalled, unread, idle, lingered
  }

  /// How often watches look whether they are needed any more while the server stops, in milliseconds.
  private static let drainPause: UInt64 = 5

  /// Goes by the server's limits as they are now: what was planned by the old ones is looked at again.
  mutating func takeNewLimits() {
    batch.limits = server.limits
    slowNanoseconds = batch.limits.slow.wholeMilliseconds * 1_000_000
    sweepNoLater(than: batch.now)
  }

  /// Begins to plan the next sweep anew.
  mutating func beginSweep() {
    nextSweep = .max
    watchesMayEnd = server.drainingWorkers.load(ordering: .acquiring) == server.workers.count
    if let drainDeadline, batch.now < drainDeadline { sweepNoLater(than: drainDeadline) }
  }

  /// Ends what has waited too long, and plans when to look again.
  mutating func endWhatIsDue(_ connection: inout Connection) {
    if let drainDeadline, batch.now >= drainDeadline {
      if connection.executes {
        batch.endConnection(&connection, .shuttingDown, "the server is shutting down")
        settle(&connection)
      }
      connection.phase = .closed
      return
    }
    if drainDeadline != nil, connection.hasWatched {
      wakeWatches(of: nil, &connection)
      settle(&connection)
      sweepNoLater(than: batch.now + Self.drainPause)
    }
    endOverdueAnswers(&connection)
    guard let due = due(connection) else { return }
    if due.time <= batch.now { end(&connection, due.reason) } else { sweepNoLater(than: due.time) }
  }

  private func due(_ connection: borrowing Connection) -> (time: UInt64, reason: Reason)? {
    let limits = batch.limits
    if connection.phase == .lingering { return (connection.lastSent + Self.lingerMilliseconds, .lingered) }
    if let since = connection.stalledSince { return (since + limits.writeTimeout.wholeMilliseconds, .unread) }
    switch connection.phase {
    case .greeting: return (connection.opened + limits.helloTimeout.wholeMilliseconds, .noHello)
    case .open where !connection.gated.isEmpty: return nil
    case .open where !connection.inbox.isEmpty:
      return (connection.lastRead + limits.frameTimeout.wholeMilliseconds, .frameStalled)
    case .open where connection.answers.isEmpty:
      return (max(connection.lastRead, connection.lastSent) + limits.idleTimeout.wholeMilliseconds, .idle)
    default: return nil
    }
  }

  private mutating func end(_ connection: inout Connection, _ reason: Reason) {
    let limits = batch.limits
    switch reason {
    case .noHello: batch.endConnection(&connection, .timedOut, "no hello came within \(limits.helloTimeout)")
    case .frameStalled: batch.endConnection(&connection, .timedOut, "a frame stood still for \(limits.frameTimeout)")
    case .idle: batch.endConnection(&connection, .timedOut, "nothing came for \(limits.idleTimeout)")
    case .unread, .lingered:
      connection.phase = .closed
      return
    }
    settle(&connection)
  }

  private mutating func endOverdueAnswers(_ connection: inout Connection) {
    let wait = batch.limits.answerTimeout.wholeMilliseconds
    var hasEnded = false
    for index in connection.answers.indices.reversed()
    where connection.answers[index].credit <= 0 && !connection.answers[index].isWatch {
      let due = connection.answers[index].waitingSince + wait
      if due > batch.now {
        sweepNoLater(than: due)
      } else {
        let answer = connection.answers.remove(at: index)
        answer.end()
        batch.fail(.answerExpired, answer.id, "no credit came for \(batch.limits.answerTimeout)")
        hasEnded = true
      }
    }
    if hasEnded { settle(&connection) }
  }
}

extension Connection {
  /// Since when the client has left its answers unread, in milliseconds; nil when nothing waits.
  var stalledSince: UInt64? { outbox.isEmpty ? nil : lastSent }
}
