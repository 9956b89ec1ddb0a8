import Foundation
import LarderServer
import LarderTLS
import Platform
import TLS
import TLSTestSupport
import TestSupport
import Testing
import Tokens

@testable import Larder

/// The client at servers with TLS.
@Suite(.serialized) struct TLSClientTests {
  private static let authority = TestAuthority()
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func write(_ bytes: [UInt8], _ name: String) throws -> String {
    try Data(bytes).write(to: URL(fileURLWithPath: folder.file(name)))
    return folder.file(name)
  }

  /// Whom the client trusts: the test's authority.
  private func trust() throws -> ClientTLS.Trust {
    .authorities(file: try write(Self.authority.files.certificate, "ca.pem"))
  }

  private func certificate(_ files: TestAuthority.Files) throws -> ClientTLS.Certificate {
    .init(file: try write(files.certificate, "client.pem"), keyFile: try write(files.key, "client-key.pem"))
  }

  /// Runs `body` with the address of a server with TLS.
  private func withTLSServer(
    _ files: TestAuthority.Files = authority.issue(), clients: TLSContext.ClientCertificates = .ignored,
    rules: [AccessRule] = [], _ body: (String) async throws -> Void
  ) async throws {
    let context = try TLSContext.server([files.identity()], clients: clients, applicationProtocol: "larder/1")
    var configuration = ServerConfiguration(addresses: [.tls(host: "127.0.0.1", port: 0)])
    configuration.stores = [try .init(name: "items", "memory")]
    configuration.secureLayer = { _ in TLSLayer(accepting: context) }
    configuration.accessRules = rules
    let server = try Server(configuration)
    let result: Result<Void, any Error>
    do { result = .success(try await body("\(server.addresses[0])")) } catch { result = .failure(error) }
    await withCheckedContinuation { continuation in server.stop { continuation.resume() } }
    try result.get()
  }

  private func error(_ body: () async throws -> Void) async -> LarderError? {
    do { try await body() } catch { return error as? LarderError }
    return nil
  }

  @Test func `many tasks share a connection`() async throws {
    try await withTLSServer { address in
      let client = try LarderClient(address, tls: ClientTLS(trust: trust()))
      let store = client.store("items")
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<32 {
          group.addTask {
            for round in 0..<50 {
              let value = Array("\(number)-\(round)".utf8)
              try await store.put("key\(number)", value)
              #expect(try await store.get("key\(number)")?.bytes == value)
            }
          }
        }
        try await group.waitForAll()
      }
      let large = (0..<3 << 20).map { UInt8(truncatingIfNeeded: $0 &* 13) }
      try await store.put("large", large)
      #expect(try await store.get("large")?.bytes == large)
      await client.shutdown()
    }
  }

  @Test func `a server that isn't trusted is refused at once, with the reason`() async throws {
    let stranger = TestAuthority("stranger")
    for (files, reason) in [
      (stranger.issue(), "unable to get local issuer certificate (subject CN=larder test, issuer CN=stranger"),
      (Self.authority.issue(.init { $0.names = ["DNS:db.example"] }), "IP address mismatch"),
      (Self.authority.issue(.init { ($0.validFrom, $0.validFor) = (-7_200, -3_600) }), "certificate has expired"),
    ] {
      try await withTLSServer(files) { address in
        // Waiting for the call's timeout would be in vain.
        let client = try LarderClient(address, tls: ClientTLS(trust: trust())).with(timeout: .seconds(600))
        let error = await error { try await client.ping() }
        #expect(error?.kind == .notTrusted && error?.outcome == .rejected && error?.isSafeToRetry == false)
        #expect(error?.message.contains("no secure connection to \(address): the server's certificate") == true)
        #expect(error?.message.contains(reason) == true, "\(String(describing: error))")
        await client.shutdown()
      }
    }
  }

  @Test func `a client whose certificate is refused learns why`() async throws {
    let clients = TLSContext.ClientCertificates.required(try Self.authority.trust())
    try await withTLSServer(clients: clients, rules: [AccessRule(.tls, .write)]) { address in
      for (files, reason) in [
        (nil, "it requires a client certificate"),
        (TestAuthority("stranger").issue(), "it doesn't know the authority that issued our certificate"),
      ] as [(TestAuthority.Files?, String)] {
        let client = try LarderClient(
          address, tls: ClientTLS(trust: trust(), certificate: files.map { try certificate($0) }))
        let error = await error { try await client.store("items").put("key", [1]) }
        #expect(error?.kind == .notTrusted && error?.outcome == .rejected)
        #expect(error?.message.contains(reason) == true, "\(String(describing: error))")
        await client.shutdown()
      }
      let client = try LarderClient(
        address, tls: ClientTLS(trust: trust(), certificate: certificate(Self.authority.issue())))
      try await client.store("items").put("key", [1])
      await client.shutdown()
    }
  }

  @Test func `the name of the server can differ from the host`() async throws {
    try await withTLSServer(Self.authority.issue(.init { $0.names = ["DNS:db.example"] })) { address in
      let client = try LarderClient(address, tls: ClientTLS(trust: trust(), serverName: "db.example"))
      try await client.ping()
      await client.shutdown()
    }
  }

  @Test func `a pinned key is trusted`() async throws {
    let files = TestAuthority.selfSigned()
    let digest = try files.identity().certificate.keyDigest.map {
      String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)
    }
    try await withTLSServer(files) { address in
      let client = try LarderClient(address, tls: ClientTLS(trust: .pinnedKeys([digest.joined()])))
      try await client.ping()
      await client.shutdown()
    }
  }

  @Test func `a new connection uses the files as they are then`() async throws {
    let clients = TLSContext.ClientCertificates.required(try Self.authority.trust())
    try await withTLSServer(clients: clients) { address in
      let wrong = try certificate(TestAuthority("stranger").issue())
      let client = try LarderClient(address, tls: ClientTLS(trust: trust(), certificate: wrong))
      #expect(await error { try await client.ping() }?.kind == .notTrusted)
      _ = try certificate(Self.authority.issue())
      try await client.ping()
      await client.shutdown()
    }
  }

  @Test func `a token makes the client a principal`() async throws {
    let token = AccessToken()
    func accept(_ configuration: inout ServerConfiguration) {
      configuration.addresses = [.tcp(host: "127.0.0.1", port: 0)]
      configuration.tokens = TokenTable([TokenRecord(name: "job", digest: token.digest, created: 0, expiry: nil)])
      configuration.accessRules = [AccessRule(.principal("job"), .write)]
    }
    try await withServer(accept) { _, server in
      var configuration = LarderClient.Configuration()
      configuration.token = token.text
      let client = try LarderClient("\(server.addresses[0])", configuration: configuration)
      try await client.store("items").put("key", [1])
      await client.shutdown()
      configuration.token = AccessToken().text
      let stranger = try LarderClient("\(server.addresses[0])", configuration: configuration)
      let refusal = await error { try await stranger.ping() }
      #expect(refusal?.kind == .notPermitted && refusal?.message == "the token is not accepted")
      await stranger.shutdown()
      // A token is not sent to other machines in clear text.
      let unsent = await error { _ = try LarderClient("tcp:192.0.2.1:7411", configuration: configuration) }
      #expect(unsent?.kind == .illegalArgument && unsent?.message.contains("use a tls: address") == true)
    }
  }

  @Test func `an address and its options must fit together`() async throws {
    #expect(await error { _ = try LarderClient("tls:localhost:1") }?.message.contains("import LarderTLS") == true)
    #expect(await error { _ = try LarderClient("tcp:localhost:1", tls: .system) }?.kind == .illegalArgument)
    let missing = ClientTLS(trust: .authorities(file: folder.file("none.pem")))
    let error = await error { _ = try LarderClient("tls:localhost:1", tls: missing) }
    #expect(error?.message == "\(folder.file("none.pem")): can't be read: No such file or directory")
    #expect(
      await self.error { _ = try LarderClient("tls:localhost:1", tls: ClientTLS(trust: .pinnedKeys(["12"]))) } != nil)
  }

  @Test func `a server that doesn't speak TLS is not trusted with anything`() async throws {
    func listenOnTCP(_ configuration: inout ServerConfiguration) {
      configuration.addresses = [.tcp(host: "127.0.0.1", port: 0)]
    }
    try await withServer(listenOnTCP) { _, server in
      guard case .tcp(let host, let port) = server.addresses[0] else { return }
      var configuration = LarderClient.Configuration()
      configuration.waitsForConnection = false
      let client = try LarderClient(
        "tls:\(host):\(port)", tls: ClientTLS(trust: trust()), configuration: configuration)
      let error = await error { try await client.ping() }
      #expect(error?.kind == .connectFailed && error?.outcome == .notExecuted, "\(String(describing: error))")
      await client.shutdown()
    }
  }
}
