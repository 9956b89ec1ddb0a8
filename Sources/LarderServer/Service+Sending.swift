import Basics
import Platform
import Wire

extension Service {
  /// How long a closed connection's client may take to read the last frame and close too.
  static let lingerMilliseconds: UInt64 = 1_000

  /// Sends what the batch has written, goes on with what had to wait for that, and sees what the connection is now to be watched for.
  mutating func settle(_ connection: inout Connection) {
    while true {
      pump(&connection)
      send(&connection)
      // If the output was full and has drained, there may be whole frames that were not taken up.
      guard connection.outbox.isEmpty, connection.executes, !connection.inbox.isEmpty else { break }
      handleInbox(&connection)
      if batch.output.isEmpty { break }
    }
    if connection.isQuiet, drainDeadline == nil { return }
    endIfDone(&connection)
    watch(&connection)
  }

  /// Sends what the socket did not take before.
  mutating func flush(_ connection: inout Connection) {
    if !connection.outbox.isEmpty {
      switch unsafe connection.descriptor.send(connection.outbox.bytes) {
      case .moved(let count):
        connection.outbox.consume(count)
        noteSent(count, to: connection)
        noteQueued(-count, for: connection)
        connection.lastSent = batch.now
      case .wouldBlock: break
      case .failed: connection.phase = .closed
      }
      guard connection.outbox.isEmpty else { return }
      connection.outbox.releaseStorage()
      // It was not read from meanwhile, so its frames and its silence are timed from here.
      connection.lastRead = batch.now
    }
    settle(&connection)
  }

  /// Adds frames of open answers to the output, one each in turn, as far as their credit and the room for output go.
  private mutating func pump(_ connection: inout Connection) {
    // Nothing comes behind a notice.
    if !connection.executes { connection.endAnswers() }
    guard !connection.answers.isEmpty else { return }
    batch.room = batch.limits.outputBytes - connection.outbox.count - connection.gated.count
    var isAnyReady = true
    while isAnyReady, !connection.answers.isEmpty {
      isAnyReady = false
      for index in connection.answers.indices.reversed() where connection.answers[index].isReady {
        guard !batch.isFull else { return }
        let bell = watchBell(for: connection.answers[index], &connection)
        if batch.continueAnswer(&connection.answers[index], bell) {
          isAnyReady = true
        } else {
          connection.answers.remove(at: index).end()
        }
      }
    }
    for answer in connection.answers where !answer.isWatch {
      sweepNoLater(than: answer.waitingSince + batch.limits.answerTimeout.wholeMilliseconds)
    }
  }

  private mutating func send(_ connection: inout Connection) {
    if !batch.gates.isEmpty || !connection.gated.isEmpty { passGates(&connection) }
    guard !batch.output.isEmpty else { return }
    if connection.outbox.isEmpty, connection.phase != .closed {
      switch unsafe connection.descriptor.send(batch.output.bytes) {
      case .moved(let count):
        noteSent(count, to: connection)
        batch.output.consume(count)
      case .wouldBlock: break
      case .failed: connection.phase = .closed
      }
      connection.lastSent = batch.now
    }
    guard !batch.output.isEmpty else { return }
    if connection.phase != .closed { queue(&connection) }
    batch.output.removeAll()
  }

  @inline(__always)
  private mutating func noteSent(_ byteCount: Int, to connection: borrowing Connection) {
    batch.tally.sentBytes &+= UInt64(byteCount)
    connection.figures.sentBytes.count(byteCount)
  }

  /// Keeps the rest of the output until the socket takes more.
  private mutating func queue(_ connection: inout Connection) {
    unsafe connection.outbox.append(batch.output.bytes)
    noteQueued(batch.output.count, for: connection)
    sweepNoLater(than: batch.now + batch.limits.writeTimeout.wholeMilliseconds)
  }

  /// Takes a connection that has nothing left to do to its end.
  private mutating func endIfDone(_ connection: inout Connection) {
    guard connection.outbox.isEmpty, connection.gated.isEmpty else { return }
    if drainDeadline != nil, connection.executes, hasNothingToTell(connection) {
      batch.endConnection(&connection, .shuttingDown, "the server is shutting down")
      send(&connection)
      guard connection.outbox.isEmpty, connection.gated.isEmpty else { return }
    }
    switch connection.phase {
    case .inputEnded where connection.answers.isEmpty: connection.phase = .closed
    case .closing:
      connection.descriptor.shutdownSending()
      connection.phase = .lingering
      connection.lastSent = batch.now
      sweepNoLater(than: batch.now + Self.lingerMilliseconds)
    default: break
    }
  }

  private func watch(_ connection: inout Connection) {
    guard connection.phase != .closed else { return }
    var interest: Poll.Interest = connection.reads ? .reading : []
    if connection.sends { interest.insert(.writing) }
    interest.insert(.changes)
    // The poll tells of changes only: what is ready already has to be asked for.
    let isReady = (connection.hasUnread && connection.reads) || (connection.outbox.isEmpty && connection.sends)
    if interest != connection.interest || isReady {
      connection.hasUnread = false
      connection.interest = interest
      poll.change(connection.descriptor.number, interest, token: connection.token.number)
    }
  }
}
