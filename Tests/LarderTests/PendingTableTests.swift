import Testing
import Wire

@testable import Larder

@Suite struct PendingTableTests {
  /// Adds three calls to a table, and returns what a server replies to them.
  private func exchange(_ table: inout PendingTable<Int>) -> [UInt8] {
    var replies = ByteBuffer()
    let (get, _) = table.insert(1, token: 1, form: .entry, store: 0, deadline: 100, now: 0)
    let (count, _) = table.insert(2, token: 2, form: .number, store: 0, deadline: 100, now: 0)
    let (page, _) = table.insert(3, token: 3, form: .stream, store: 0, deadline: 100, now: 0)
    replies.appendReply(id: count, number: 5)
    for more in [true, false] {
      let start = replies.beginReply(id: page, more: more)
      replies.append([1, 2, 3])
      replies.endFrame(start)
    }
    replies.appendError(.notFound, id: get)
    return replies.toArray()
  }

  /// Processes replies, and returns the completions and why the connection must be closed.
  private func scan(
    _ bytes: [UInt8], _ table: inout PendingTable<Int>
  ) -> (completions: [Completion<Int>], closeReason: CloseReason?) {
    var completions: [Completion<Int>] = []
    let scan = unsafe table.scan(bytes.span.bytes, maxFrameLength: 1_000, into: &completions)
    return (completions, scan.closeReason)
  }

  private struct Unexpected: Error {}

  @Test func `replies find their calls however they are split`() throws {
    var whole = PendingTable<Int>(credit: 65_536)
    let size = exchange(&whole).count
    for split in 0...size {
      var table = PendingTable<Int>(credit: 65_536)
      let bytes = exchange(&table)
      var completions: [Completion<Int>] = []
      let head = Array(bytes[..<split])
      let first = unsafe table.scan(head.span.bytes, maxFrameLength: 1_000, into: &completions)
      let tail = Array(bytes[first.consumed...])
      let second = unsafe table.scan(tail.span.bytes, maxFrameLength: 1_000, into: &completions)
      #expect(first.closeReason == nil && second.closeReason == nil)
      #expect(first.consumed + second.consumed == size)
      #expect(completions.map(\.caller) == [2, 3, 1])
      #expect(completions.map { $0.stream != nil } == [false, true, false])
      #expect(table.inFlight == 0)
    }
  }

  @Test func `a late reply to an abandoned call is dropped, and frees its slot`() throws {
    var table = PendingTable<Int>(credit: 65_536)
    let (id, slot) = table.insert(1, token: 1, form: .number, store: nil, deadline: 100, now: 0)
    #expect(table.abandon(slot).caller == 1)
    #expect(table.inFlight == 1)
    var replies = ByteBuffer()
    replies.appendReply(id: id, number: 5)
    let (completions, closeReason) = scan(replies.toArray(), &table)
    #expect(closeReason == nil)
    #expect(completions.isEmpty && table.inFlight == 0)
    // The next request has another id in the same slot, so a second reply to the first one has none.
    let next = table.insert(2, token: 2, form: .number, store: nil, deadline: 100, now: 0)
    #expect(next.slot == slot && next.id != id)
    guard case .protocolViolation = scan(replies.toArray(), &table).closeReason else { throw Unexpected() }
  }

  @Test func `a reply stream that exceeds its credit is a violation`() throws {
    var table = PendingTable<Int>(credit: 10)
    let (id, _) = table.insert(1, token: 1, form: .stream, store: nil, deadline: 100, now: 0)
    var replies = ByteBuffer()
    for _ in 0..<2 {
      let start = replies.beginReply(id: id, more: true)
      replies.append([1, 2, 3])
      replies.endFrame(start)
    }
    guard case .protocolViolation = scan(replies.toArray(), &table).closeReason else { throw Unexpected() }
  }

  @Test func `calls expire when their deadline passes and not before`() {
    var table = PendingTable<Int>(credit: 10)
    for deadline in 1...5 as ClosedRange<UInt64> {
      _ = table.insert(Int(deadline), token: deadline, form: .number, store: nil, deadline: deadline * 10, now: 0)
    }
    let (callers, cancelIDs, nextDeadline) = table.expire(now: 30)
    #expect(callers == [1, 2, 3] && cancelIDs.isEmpty && nextDeadline == 40)
  }

  @Test func `a notice ends the connection`() {
    var table = PendingTable<Int>(credit: 10)
    var replies = ByteBuffer()
    replies.appendError(.shuttingDown, id: 0, message: "bye")
    guard case .notice(let error) = scan(replies.toArray(), &table).closeReason else {
      Issue.record("not a notice")
      return
    }
    #expect(error.kind == .shuttingDown && error.outcome == .notExecuted && error.message == "bye")
  }

  @Test func `a queue of waiters is first in, first out, also when some leave it`() {
    var queue = WaiterQueue<Int>()
    for number in 1...6 { queue.append(number, token: UInt64(number), deadline: number == 3 ? 5 : 50) }
    #expect(queue.remove(token: 2) == 2)
    let (expired, nextDeadline) = queue.expire(now: 10)
    #expect(expired == [3] && nextDeadline == 50)
    #expect(
      [queue.popFirst(), queue.popFirst(), queue.popFirst(), queue.popFirst(), queue.popFirst()]
        == [1, 4, 5, 6, nil])
    #expect(queue.isEmpty)
  }
}
