import Wire

/// Output that waits until what it tells of is durable.
extension Service {
  /// Puts the output behind what waits already, and takes back what need not wait any more.
  mutating func passGates(_ connection: inout Connection) {
    if !batch.output.isEmpty {
      batch.output.withSpan { connection.gated.append($0, gates: batch.gates) }
      batch.output.removeAll()
    }
    batch.gates.removeAll(keepingCapacity: true)
    repeat {
      for id in connection.gated.release(into: &batch.output) {
        // An answer that failed has no further frames.
        if let index = connection.answers.firstIndex(where: { $0.id == id }) {
          connection.answers.remove(at: index).end()
        }
      }
    } while connection.gated.first.map { !$0.commitWriter.wait(for: $0.revision, mailbox) } ?? false
    connection.isHeldUp = connection.gated.count >= batch.limits.outputBytes
    if !connection.gated.isEmpty, !connection.isWaitingAtGates {
      connection.isWaitingAtGates = true
      waitingAtGates.append(connection.token)
    }
  }
}
