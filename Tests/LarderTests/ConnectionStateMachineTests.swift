import Testing

@testable import Larder

@Suite struct ConnectionStateMachineTests {
  private let error = LarderError(.connectFailed, outcome: .notExecuted, "no")

  @Test func `an attempt to connect is made on request and ends at its deadline`() {
    var machine = ConnectionStateMachine(backoff: Backoff(), attemptMilliseconds: 100)
    #expect(machine.nextAction(now: 0, hasWaiters: true) == .none)
    #expect(machine.requestConnection() && !machine.requestConnection())
    #expect(machine.nextAction(now: 0, hasWaiters: true) == .connect(incarnation: 1, attempt: 0))
    #expect(machine.nextActionTime == 100)
    #expect(machine.nextAction(now: 100, hasWaiters: true) == .timeOut)
    machine.failed(error, now: 100, hasWaiters: true)
    #expect(machine.lastError == error)
    #expect(machine.nextActionTime > 100 && machine.nextActionTime <= 120)
    guard case .connect(_, 1) = machine.nextAction(now: machine.nextActionTime, hasWaiters: true) else {
      Issue.record("no second attempt")
      return
    }
    machine.socketConnected()
    machine.handshakeCompleted()
    machine.helloReceived(now: 130)
    #expect(machine.isReady && machine.lastError == nil && machine.nextActionTime == .max)
  }

  @Test func `a connection that no call needs is not made again`() {
    var machine = ConnectionStateMachine(backoff: Backoff(), attemptMilliseconds: 100)
    _ = machine.requestConnection()
    _ = machine.nextAction(now: 0, hasWaiters: true)
    machine.failed(error, now: 0, hasWaiters: false)
    #expect(machine.nextAction(now: machine.nextActionTime, hasWaiters: false) == .none)
    #expect(!machine.needsEventLoop)
  }

  @Test func `pauses double up to the cap, less a random part of up to half`() {
    let backoff = Backoff(base: .milliseconds(10), cap: .milliseconds(100))
    for (failures, maxPause) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 100), (60, 100)] as [(Int, UInt64)] {
      for _ in 0..<100 {
        let pause = backoff.milliseconds(afterFailures: failures)
        #expect(pause >= maxPause / 2 && pause <= maxPause)
      }
    }
  }

  @Test func `every kind of error has a code, and no two have the same`() {
    let codes = LarderError.Kind.allCases.map(\.code)
    #expect(Set(codes).count == codes.count)
  }

  @Test func `codes that this library does not know are classified by their outcome`() {
    let kinds: [LarderError.Outcome] = [.notExecuted, .rejected, .unknown, .unknown]
    for (outcome, expected) in zip([1, 2, 3, 77] as [UInt8], kinds) {
      let body: [UInt8] = []
      let error = unsafe LarderError(
        frame: .init(bodySize: 0, kind: outcome, flags: 0, detail: 999, id: 1), body: body.span.bytes)
      #expect(error.kind == .unknown && error.code == 999 && error.outcome == expected)
    }
  }
}
