import Testing

@testable import Storage

@Suite struct DurabilityTests {
  @Test(arguments: [
    ("always", Durability.always), ("none", .none), ("interval:1s", .interval(.seconds(1))),
    ("interval:250ms", .interval(.milliseconds(250))), ("interval:3600s", .interval(.seconds(3_600))),
  ])
  func `a durability is parsed, and its description is the same text`(text: String, durability: Durability) {
    #expect(Durability(text) == durability)
    #expect(durability.description == text)
  }

  @Test func `whole seconds are formatted as seconds`() {
    #expect(Durability("interval:2000ms")?.description == "interval:2s")
  }

  @Test(arguments: [
    "", "Always", "interval", "interval:", "interval:s", "interval:ms", "interval:1", "interval:1m", "interval:0s",
    "interval:-1s", "interval:+1s", "interval:1.5s", "interval:1 s", "interval:3601s", "interval:99999999999999999999s",
    "interval:9223372036854775807s", "always ",
  ])
  func `any other text isn't a durability`(text: String) {
    #expect(Durability(text) == nil)
  }
}
