import Testing

@testable import Larder

/// Which requests wait for others, without any I/O.
@Suite struct CallGatheringTests {
  @Test func `the task waits until the callers it has resumed have called again`() {
    var gathering = CallGathering()
    #expect(gathering.mustWait(inFlight: 8) == false)
    gathering.received(replies: 8)
    for inFlight in 1..<8 {
      gathering.requestSubmitted()
      #expect(gathering.holdsFirstRequest(inFlight: inFlight))
    }
    #expect(gathering.mustWait(inFlight: 7) == true)
    gathering.requestSubmitted()
    #expect(gathering.mustWait(inFlight: 8) == false)
  }

  @Test func `the reading task doesn't wait long for callers that don't call again`() {
    var gathering = CallGathering()
    gathering.received(replies: 8)
    for _ in 0..<CallGathering.maxTurns { #expect(gathering.mustWait(inFlight: 0) == true) }
    #expect(gathering.mustWait(inFlight: 0) == false)
    // It doesn't wait for them later, either.
    gathering.received(replies: 1)
    gathering.requestSubmitted()
    #expect(gathering.mustWait(inFlight: 1) == false)
  }

  @Test func `the reading task doesn't wait for only a few callers`() {
    var gathering = CallGathering()
    gathering.received(replies: 1)
    #expect(gathering.mustWait(inFlight: 2) == false)
  }

  @Test func `the first of few requests is sent at once, and so is that of many calls, which coalesce`() {
    var gathering = CallGathering()
    #expect(!gathering.holdsFirstRequest(inFlight: 1))
    gathering.received(replies: 3)
    #expect(!gathering.holdsFirstRequest(inFlight: 1))
    gathering.received(replies: 20)
    #expect(!gathering.holdsFirstRequest(inFlight: 1))
    #expect(gathering.mustWait(inFlight: 1) == false)
  }
}
