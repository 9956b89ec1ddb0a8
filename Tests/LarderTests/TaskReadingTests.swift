import Testing

@testable import Larder

/// Who reads the replies, without any I/O.
@Suite struct TaskReadingTests {
  private let maxWait = TaskReading.maxWait

  /// Returns a value whose task has just started, after as many calls as that takes.
  private func started() -> TaskReading {
    var reading = TaskReading(isPossible: true)
    for _ in 1..<TaskReading.initialThreshold { #expect(reading.requestSubmitted() == .none) }
    #expect(reading.requestSubmitted() == .takeOver)
    #expect(reading.isActive && reading.hasTurns)
    return reading
  }

  @Test func `a task takes over after a series of calls, and there is one at a time`() {
    var reading = started()
    #expect(reading.requestSubmitted() == .none)
    #expect(reading.turn(isAwaited: true, now: 0) == .none)
    #expect(reading.requestSubmitted() == .none)
  }

  @Test func `the task goes on while replies arrive, however long that is`() {
    var reading = started()
    for turn in 1...100 as ClosedRange<UInt64> {
      #expect(reading.turn(isAwaited: true, now: turn * maxWait) == .none)
      reading.received()
    }
  }

  @Test func `the task ends when no call waits, and the next call starts another one`() {
    var reading = started()
    #expect(reading.turn(isAwaited: true, now: 0) == .none)
    reading.received()
    for _ in 0..<TaskReading.idleTurns { #expect(reading.turn(isAwaited: false, now: 1) == .none) }
    #expect(reading.turn(isAwaited: false, now: 1) == .end)
    #expect(reading.isActive && !reading.hasTurns)
    #expect(reading.requestSubmitted() == .start)
  }

  @Test func `the event loop reads again when no call waits if there are reply streams`() {
    var reading = started()
    for _ in 0..<TaskReading.idleTurns {
      #expect(reading.turn(isAwaited: false, hasStreams: true, now: 0) == .none)
    }
    #expect(reading.turn(isAwaited: false, hasStreams: true, now: 0) == .handBack)
    #expect(!reading.isActive && !reading.hasTurns)
  }

  @Test func `the event loop reads again if a reply takes long, and a task tries again later each time`() {
    var reading = started()
    #expect(reading.turn(isAwaited: true, now: 5) == .none)
    #expect(reading.turn(isAwaited: true, now: 5 + maxWait) == .none)
    #expect(reading.turn(isAwaited: true, now: 6 + maxWait) == .handBack)
    #expect(!reading.isActive)
    var calls = 1
    while reading.requestSubmitted() == .none { calls += 1 }
    #expect(calls == TaskReading.initialThreshold * 4)
  }

  @Test func `the event loop reads again if no call comes`() {
    var reading = started()
    #expect(reading.tick() == .none)
    for _ in 0...TaskReading.idleTurns { _ = reading.turn(isAwaited: false, now: 0) }
    #expect(reading.tick() == .none)
    #expect(reading.tick() == .handBack)
    #expect(reading.tick() == .none)
  }

  @Test func `the event loop reads again if the task gets no turn, and the task then ends`() {
    var reading = started()
    #expect(reading.tick() == .none)
    // Calls that come meanwhile change nothing.
    #expect(reading.requestSubmitted() == .none)
    #expect(reading.tick() == .handBack)
    #expect(!reading.hasTurns)
    // There is no second task before the first one has ended.
    for _ in 0..<1_000 { #expect(reading.requestSubmitted() == .none) }
    #expect(reading.turn(isAwaited: true, now: 0) == .end)
    while reading.requestSubmitted() == .none {}
    #expect(reading.isActive)
  }

  @Test func `on one processor, only the event loop reads`() {
    var reading = TaskReading(isPossible: false)
    for _ in 0..<1_000 { #expect(reading.requestSubmitted() == .none) }
    #expect(!reading.isActive)
  }
}
