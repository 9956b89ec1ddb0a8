import Testing

@testable import Larder

struct LinkStateMachineTests {
  let error = LarderError(.connectFailed, outcome: .notExecuted, "no")

  @Test func `a connection is made when it is wanted, and given up in time`() {
    var link = ConnectionStateMachine(backoff: Backoff(), attemptMilliseconds: 100)
    #expect(link.due(now: 0, isWanted: true) == .nothing)
    #expect(link.want() && !link.want())
    #expect(link.due(now: 0, isWanted: true) == .connect(incarnation: 1, attempt: 0))
    #expect(link.nextDue == 100)
    #expect(link.due(now: 100, isWanted: true) == .giveUp)
    link.failed(error, now: 100, isWanted: true)
    #expect(link.lastFailure == error)
    #expect(link.nextDue > 100 && link.nextDue <= 120)
    guard case .connect(_, 1) = link.due(now: link.nextDue, isWanted: true) else {
      Issue.record("no second attempt")
      return
    }
    link.connected()
    link.greeted(now: 130)
    #expect(link.isReady && link.lastFailure == nil && link.nextDue == .max)
  }

  @Test func `nobody's connection is not made again`() {
    var link = ConnectionStateMachine(backoff: Backoff(), attemptMilliseconds: 100)
    _ = link.want()
    _ = link.due(now: 0, isWanted: true)
    link.failed(error, now: 0, isWanted: false)
    #expect(link.due(now: link.nextDue, isWanted: false) == .nothing)
    #expect(!link.isActive)
  }

  @Test func `pauses double up to the cap, less a random part of up to half`() {
    let backoff = Backoff(base: .milliseconds(10), cap: .milliseconds(100))
    for (failures, longest) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 100), (60, 100)] as [(Int, UInt64)] {
      for _ in 0..<100 {
        let pause = backoff.milliseconds(afterFailures: failures)
        #expect(pause >= longest / 2 && pause <= longest)
      }
    }
  }

  @Test func `every code has a number, and no two have the same`() {
    let codes = LarderError.Kind.allCases.map(\.code)
    #expect(Set(codes).count == codes.count)
  }

  @Test func `codes this library does not know go by their outcome`() {
    let kinds: [LarderError.Outcome] = [.notExecuted, .rejected, .unknown, .unknown]
    for (outcome, expected) in zip([1, 2, 3, 77] as [UInt8], kinds) {
      let body: [UInt8] = []
      let header = unsafe LarderError(
        frame: .init(bodySize: 0, kind: outcome, flags: 0, detail: 999, id: 1), body: body.span.bytes)
      #expect(header.kind == .unknown && header.code == 999 && header.outcome == expected)
    }
  }
}
