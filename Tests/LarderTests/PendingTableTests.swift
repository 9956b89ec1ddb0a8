import Testing
import Wire

@testable import Larder

struct PendingTableTests {
  /// Three calls, and what a server replies to them.
  func exchange(_ table: inout PendingTable<Int>) -> [UInt8] {
    var replies = ByteBuffer()
    let (get, _) = table.insert(1, token: 1, form: .entry, store: 0, deadline: 100, now: 0)
    let (count, _) = table.insert(2, token: 2, form: .number, store: 0, deadline: 100, now: 0)
    let (page, _) = table.insert(3, token: 3, form: .answer, store: 0, deadline: 100, now: 0)
    replies.appendReply(id: count, number: 5)
    for more in [true, false] {
      let start = replies.beginReply(id: page, more: more)
      replies.append([1, 2, 3])
      replies.endFrame(start)
    }
    replies.appendError(.notFound, id: get)
    return replies.toArray()
  }

  @Test func `replies find their calls however they are split`() throws {
    var whole = PendingTable<Int>(credit: 65_536)
    let size = exchange(&whole).count
    for split in 0...size {
      var table = PendingTable<Int>(credit: 65_536)
      let bytes = exchange(&table)
      var completions: [Completion<Int>] = []
      let head = Array(bytes[..<split])
      let first = unsafe table.take(head.span.bytes, largest: 1_000, into: &completions)
      let tail = Array(bytes[first.consumed...])
      let second = unsafe table.take(tail.span.bytes, largest: 1_000, into: &completions)
      #expect(first.end == nil && second.end == nil)
      #expect(first.consumed + second.consumed == size)
      #expect(completions.map(\.caller) == [2, 3, 1])
      #expect(completions.map { $0.rest != nil } == [false, true, false])
      #expect(table.inFlight == 0)
    }
  }

  @Test func `a late reply to an abandoned call is dropped, and its slot is free then`() throws {
    var table = PendingTable<Int>(credit: 65_536)
    let (id, slot) = table.insert(1, token: 1, form: .number, store: nil, deadline: 100, now: 0)
    #expect(table.abandon(slot).caller == 1)
    #expect(table.inFlight == 1)
    var replies = ByteBuffer()
    replies.appendReply(id: id, number: 5)
    let bytes = replies.toArray()
    var completions: [Completion<Int>] = []
    #expect(unsafe table.take(bytes.span.bytes, largest: 1_000, into: &completions).end == nil)
    #expect(completions.isEmpty && table.inFlight == 0)
    // The same id again is one that no request has.
    let again = table.insert(2, token: 2, form: .number, store: nil, deadline: 100, now: 0)
    #expect(again.slot == slot && again.id != id)
    let end = unsafe table.take(bytes.span.bytes, largest: 1_000, into: &completions).end
    guard case .violation = end else { throw Unexpected() }
  }

  struct Unexpected: Error {}

  @Test func `an answer beyond its credit is a violation`() throws {
    var table = PendingTable<Int>(credit: 10)
    let (id, _) = table.insert(1, token: 1, form: .answer, store: nil, deadline: 100, now: 0)
    var replies = ByteBuffer()
    for _ in 0..<2 {
      let start = replies.beginReply(id: id, more: true)
      replies.append([1, 2, 3])
      replies.endFrame(start)
    }
    let bytes = replies.toArray()
    var completions: [Completion<Int>] = []
    let end = unsafe table.take(bytes.span.bytes, largest: 1_000, into: &completions).end
    guard case .violation = end else { throw Unexpected() }
  }

  @Test func `calls expire when their time is up and not before`() {
    var table = PendingTable<Int>(credit: 10)
    for deadline in 1...5 as ClosedRange<UInt64> {
      _ = table.insert(Int(deadline), token: deadline, form: .number, store: nil, deadline: deadline * 10, now: 0)
    }
    let (callers, cancels, next) = table.expire(now: 30)
    #expect(callers == [1, 2, 3] && cancels.isEmpty && next == 40)
  }

  @Test func `a notice is an end`() {
    var table = PendingTable<Int>(credit: 10)
    var replies = ByteBuffer()
    replies.appendError(.shuttingDown, id: 0, message: "bye")
    let bytes = replies.toArray()
    var completions: [Completion<Int>] = []
    let end = unsafe table.take(bytes.span.bytes, largest: 1_000, into: &completions).end
    guard case .notice(let error) = end else {
      Issue.record("not a notice")
      return
    }
    #expect(error.kind == .shuttingDown && error.outcome == .notExecuted && error.message == "bye")
  }

  @Test func `a line is first come, first served, whoever leaves it`() {
    var line = WaitingLine<Int>()
    for number in 1...6 { line.append(number, token: UInt64(number), deadline: number == 3 ? 5 : 50) }
    #expect(line.remove(token: 2) == 2)
    let (late, next) = line.expire(now: 10)
    #expect(late == [3] && next == 50)
    #expect(
      [line.popFirst(), line.popFirst(), line.popFirst(), line.popFirst(), line.popFirst()] == [1, 4, 5, 6, nil])
    #expect(line.isEmpty)
  }
}
