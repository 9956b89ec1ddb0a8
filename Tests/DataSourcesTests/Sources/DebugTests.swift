import DataSources
import Testing

@Suite struct DebugTests {
  @Test func `calls are delayed, logged and failed`() async throws {
    let lines = Recorder<String>()
    let inner = ScriptedDataSource<Int>()
    let slow = DebugDataSource(inner, delay: .milliseconds(20), log: { lines.add($0) })
    let took = try await ContinuousClock().measure { _ = try await slow.put(1, forId: "a") }
    #expect(took >= .milliseconds(20))
    #expect(lines.events.count == 2 && lines.events.allSatisfy { $0.hasPrefix("put IdQuery<String>(id: \"a\")") })
    let broken = DebugDataSource(inner, errorProbability: 1, error: DataSourceError.unknown)
    #expect(await failure { try await broken.get("a") } == .unknown)
    #expect(inner.calls == [.put])
  }
}
