import Dispatch
import Glibc
import Platform
import Testing

struct PollTests {
  /// Returns two connected sockets.
  private func pair() throws -> (Int32, Int32) {
    var numbers: [Int32] = [0, 0]
    let result = unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &numbers)
    try #require(result == 0)
    return (numbers[0], numbers[1])
  }

  @Test func `an event has the descriptor's token and readiness`() throws {
    let (left, right) = try pair()
    defer {
      close(left)
      close(right)
    }
    let poll = try Poll()
    var events = Poll.Events(capacity: 8)
    try poll.add(left, .reading, token: 0xFFFF_FFFF_FFFF_FFFE)
    #expect(poll.wait(timeoutMilliseconds: 0, into: &events) == 0)

    _ = unsafe write(right, "x", 1)
    #expect(poll.wait(timeoutMilliseconds: 1_000, into: &events) == 1)
    #expect(events[0].token == 0xFFFF_FFFF_FFFF_FFFE)
    #expect(events[0].readable && !events[0].writable && !events[0].hasHungUp)

    poll.change(left, [.reading, .writing], token: 7)
    #expect(poll.wait(timeoutMilliseconds: 1_000, into: &events) == 1)
    #expect(events[0].token == 7)
    #expect(events[0].readable && events[0].writable)

    poll.change(left, [], token: 7)
    #expect(poll.wait(timeoutMilliseconds: 0, into: &events) == 0)
    close(right)
    #expect(poll.wait(timeoutMilliseconds: 1_000, into: &events) == 1)
    #expect(events[0].hasHungUp && !events[0].readable)

    poll.remove(left)
    #expect(poll.wait(timeoutMilliseconds: 0, into: &events) == 0)
  }

  @Test func `adding an invalid descriptor or one that was added before fails`() throws {
    let poll = try Poll()
    #expect(throws: SystemError("epoll_ctl", errno: EBADF)) { try poll.add(-1, .reading, token: 1) }
    let wakeup = try Wakeup()
    try poll.add(wakeup.descriptor.number, .reading, token: 1)
    #expect(throws: SystemError("epoll_ctl", errno: EEXIST)) {
      try poll.add(wakeup.descriptor.number, .reading, token: 1)
    }
  }

  @Test func `events beyond the buffer's capacity come with the next wait`() throws {
    let poll = try Poll()
    var wakeups: [WakeupBox] = []
    for token in 0..<5 {
      let wakeup = try WakeupBox()
      wakeup.wakeup.signal()
      try poll.add(wakeup.wakeup.descriptor.number, .reading, token: UInt64(token))
      wakeups.append(wakeup)
    }
    var events = Poll.Events(capacity: 2)
    var seen: Set<UInt64> = []
    for _ in 0..<10 {
      for index in 0..<poll.wait(timeoutMilliseconds: 0, into: &events) { seen.insert(events[index].token) }
    }
    #expect(seen == [0, 1, 2, 3, 4])
    #expect(wakeups.count == 5)
  }

  @Test func `a poll ends at its timeout`() throws {
    let poll = try Poll()
    var events = Poll.Events(capacity: 1)
    let start = monotonicMilliseconds()
    #expect(poll.wait(timeoutMilliseconds: 50, into: &events) == 0)
    #expect(monotonicMilliseconds() - start >= 49)
  }

  @Test func `a wakeup from another thread ends a wait and lasts until it is cleared`() throws {
    let poll = try Poll()
    let box = try WakeupBox()
    try poll.add(box.wakeup.descriptor.number, .reading, token: 3)
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) {
      box.wakeup.signal()
      box.wakeup.signal()
    }
    var events = Poll.Events(capacity: 1)
    #expect(poll.wait(timeoutMilliseconds: 5_000, into: &events) == 1)
    usleep(20_000)
    #expect(poll.wait(timeoutMilliseconds: 0, into: &events) == 1)
    box.wakeup.clear()
    #expect(poll.wait(timeoutMilliseconds: 0, into: &events) == 0)
    box.wakeup.clear()
    box.wakeup.signal()
    #expect(poll.wait(timeoutMilliseconds: 0, into: &events) == 1)
  }
}

/// A wakeup that several closures and arrays can share.
private final class WakeupBox: Sendable {
  let wakeup: Wakeup
  init() throws { wakeup = try Wakeup() }
}
