import Foundation
import Larder
import LarderTesting
import Testing

@Suite struct TestServerTests {
  @Test(arguments: ["memory", "log", "directory"])
  func `a server has the stores that it was started with`(_ engine: String) async throws {
    let server = try TestServer.start(stores: ["items": engine])
    #expect(try await server.client.stores().map(\.engine) == [engine])
    try await server.client.store("items").put("a", [1])
    let another = try LarderClient(server.address)
    #expect(try await another.store("items").get("a")?.bytes == [1])
  }

  @Test func `starting a server with an unknown engine throws`() {
    #expect(throws: (any Error).self) { try TestServer.start(stores: ["items": "marble"]) }
  }

  @Test func `a stopped server is away, and a restarted one has its durable stores`() async throws {
    var configuration = LarderClient.Configuration()
    configuration.waitsForConnection = false
    let server = try TestServer.start(stores: ["kept": "log", "lost": "memory"], client: configuration)
    for name in ["kept", "lost"] { try await server.client.store(name).put("a", [1]) }
    await server.stop()
    await server.stop()
    await #expect(throws: LarderError.self) { try await server.client.ping() }
    try server.restart()
    #expect(try await server.client.store("kept").get("a")?.bytes == [1])
    #expect(try await server.client.store("lost").get("a") == nil)
  }

  @Test func `the folder of a test server is removed with it`() async throws {
    var server: TestServer? = try TestServer.start(stores: ["items": "log"])
    let address = try #require(server?.address)
    let folder = URL(fileURLWithPath: String(address.dropFirst("unix:".count))).deletingLastPathComponent().path
    #expect(FileManager.default.fileExists(atPath: folder))
    server = nil
    while FileManager.default.fileExists(atPath: folder) { try await Task.sleep(for: .milliseconds(1)) }
  }
}
