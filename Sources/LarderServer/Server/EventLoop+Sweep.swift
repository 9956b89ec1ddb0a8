extension EventLoop {
  /// Ends whatever has timed out, and schedules the next sweep for what has not.
  mutating func sweep(_ connections: inout WorkerConnections) {
    let drain = beginSweep()
    forEach(of: &connections) { loop, connection, _, spare in loop.sweep(&connection, drain, &spare) }
    wakeCommitWriters()
  }

  private mutating func sweep(_ connection: inout Connection, _ drain: Drain, _ spare: inout ReplyBuffer) {
    if let deadline = drain.deadline {
      if deadline <= now { return cutOff(&connection, &spare) }
      if connection.hasWatched {
        connection.resumeWatches(of: nil)
        settle(&connection, &spare)
        scheduleSweep(noLaterThan: now + Drain.sweepInterval)
      }
    }
    if let deadline = connection.waits.pauseDeadline {
      if deadline <= now {
        endPause(of: &connection, isOverdue: true, &spare)
      } else {
        scheduleSweep(noLaterThan: deadline)
      }
    }
    connection.uploads.discardOverdue(limits, now: now)
    if let deadline = connection.uploads.deadline(limits) { scheduleSweep(noLaterThan: deadline) }
    if connection.acceptsCredit {
      if endStreams(of: &connection, .lackOfCredit, &spare) { settle(&connection, &spare) }
      if let deadline = connection.creditDeadline(limits) { scheduleSweep(noLaterThan: deadline) }
    }
    guard let timeout = connection.timeout(limits) else { return }
    guard timeout.deadline <= now else { return scheduleSweep(noLaterThan: timeout.deadline) }
    guard let message = timeout.message(limits) else {
      connection.phase = .closed
      return
    }
    end(&connection, .timedOut, message, &spare)
    settle(&connection, &spare)
  }

  /// Closes a connection that the server can't wait for any longer.
  private mutating func cutOff(_ connection: inout Connection, _ spare: inout ReplyBuffer) {
    if connection.executes {
      end(&connection, .shuttingDown, "the server is shutting down", &spare)
      settle(&connection, &spare)
    }
    connection.phase = .closed
  }
}
