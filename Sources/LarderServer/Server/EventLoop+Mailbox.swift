import Storage

extension EventLoop {
  /// Does what other threads have asked for.
  mutating func readMailbox(_ connections: inout WorkerConnections) {
    let mail = mailboxContents()
    if mail.hasNewLimits {
      updateLimits()
      forEach(of: &connections) { loop, connection, _, spare in loop.updateAccess(of: &connection, &spare) }
    }
    for arrival in mail.arrivals { open(arrival, &connections) }
    releaseHeldReplies(&connections)
    for pause in mail.endedPauses {
      serve(pause.connection, of: &connections) { loop, connection, spare in
        // The pause may have ended already.
        if connection.waits.isPaused(as: pause) { loop.endPause(of: &connection, isOverdue: false, &spare) }
      }
    }
    for store in mail.changedStores {
      for token in takeWatchers(of: store) {
        serve(token, of: &connections) { loop, connection, spare in
          connection.resumeWatches(of: store)
          loop.settle(&connection, &spare)
        }
      }
    }
    for token in mail.connectionsWithMessages {
      serve(token, of: &connections) { loop, connection, spare in
        connection.hasPushes = true
        loop.settle(&connection, &spare)
      }
    }
    if mail.hasDroppedStores {
      forEach(of: &connections) { loop, connection, _, spare in
        if loop.endStreams(of: &connection, .droppedStore, &spare) { loop.settle(&connection, &spare) }
      }
    }
    if mail.hasRevokedShares {
      forEach(of: &connections) { loop, connection, _, spare in loop.endRevokedShares(of: &connection, &spare) }
    }
    for job in mail.endedJobs {
      serve(job.token, of: &connections) { loop, connection, spare in loop.beginReply(to: job, &connection, &spare) }
    }
    if mail.mustDrain { beginDrain(&connections) }
    for respond in mail.probes { respond() }
  }
}
