import Larder
import LarderServer
import Platform
import Storage
import Testing

/// What callers see of rules that don't let them.
struct RefusalTests {
  private func isRefused(_ body: () async throws -> Void) async -> Bool {
    do {
      try await body()
      return false
    } catch {
      guard let error = error as? LarderError else { return false }
      return error.kind == .notPermitted && error.code == 37 && error.outcome == .rejected && !error.isSafeToRetry
        && error.message.hasPrefix("a TCP client may not ") && "\(error)".contains("larderd's setting access")
    }
  }

  @Test func `a call that is not permitted fails at once, and a later one succeeds once it is`() async throws {
    try await withServer {
      $0.addresses = [.tcp(host: "127.0.0.1", port: 0)]
      $0.accessRules = [AccessRule(.unix, .admin)]
    } _: { client, server in
      let items = client.store("items").with(timeout: .seconds(60))
      func change(_ rules: [AccessRule]) throws {
        try server.change(stores: [], limits: ServerLimits(), rules: rules)
      }
      let clock = ContinuousClock()
      let time = await clock.measure { #expect(await isRefused { _ = try await items.get("a") }) }
      #expect(time < .seconds(30), "it waited for its time to be up")
      try change([AccessRule(.tcp, .read)])
      #expect(try await items.get("a") == nil)
      #expect(await isRefused { try await items.put("a", [1]) })
      #expect(await isRefused { try await client.createStore("new", engine: "memory") })
      try change([AccessRule(.tcp, .admin)])
      try await items.put("a", [1])
      // The connection ends with a notice.
      try change([AccessRule(.unix, .admin)])
      #expect(await isRefused { try await items.put("a", [2]) })
      try change([])
      #expect(try await items.get("a")?.bytes == [1])
    }
  }
}
