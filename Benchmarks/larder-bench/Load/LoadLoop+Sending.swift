import Platform
import Wire

extension LoadLoop {
  /// Sends as many requests over a connection as it may have under way.
  @inline(__always)
  mutating func refill(_ index: Int) {
    guard connections[index].isOpen, connections[index].unsent.isEmpty else { return }
    var count = min(goal.pipeline &- connections[index].outstanding, remaining)
    if pace != nil { count = min(count, connections[index].released &- Int(connections[index].sent)) }
    guard count > 0 else { return }
    output.removeAll()
    for _ in 0..<count {
      let sequence = connections[index].sent
      if goal.isLoading {
        writer.appendLoad(
          UInt64(nextLoad), to: &output, sequence: sequence, session: connections[index].session)
        nextLoad &+= 1
      } else {
        writer.append(
          to: &output, sequence: sequence, session: connections[index].session,
          followUp: &connections[index].followUp)
      }
      connections[index].noteSent(countingFrom: pace?.time(of: Int(sequence), on: index) ?? now)
    }
    remaining &-= count
    outstanding &+= count
    send(index)
  }

  /// Sends the output; what the socket does not take is kept, and nothing else is sent over the connection before it.
  @inline(__always)
  private mutating func send(_ index: Int) {
    switch unsafe connections[index].descriptor.send(output.bytes) {
    case .moved(let count) where count == output.count: break
    case .moved(let count): keep(index, from: count)
    case .wouldBlock: keep(index, from: 0)
    case .failed: lose(index)
    }
  }

  private mutating func keep(_ index: Int, from count: Int) {
    output.consume(count)
    unsafe connections[index].unsent.append(output.bytes)
    poll.change(connections[index].descriptor.number, [.reading, .writing], token: UInt64(index))
  }

  /// Sends what was kept.
  mutating func flush(_ index: Int) {
    switch unsafe connections[index].descriptor.send(connections[index].unsent.bytes) {
    case .moved(let count): connections[index].unsent.consume(count)
    case .wouldBlock: return
    case .failed: return lose(index)
    }
    guard connections[index].unsent.isEmpty else { return }
    poll.change(connections[index].descriptor.number, .reading, token: UInt64(index))
    if connections[index].outstanding < goal.pipeline && pace != nil { refill(index) }
  }
}
