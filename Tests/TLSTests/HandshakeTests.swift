import Platform
import TLSTestSupport
import Testing

@testable import TLS

/// Which certificates each side accepts, and what it says about the others.
@Suite struct HandshakeTests {
  private static let authority = TestAuthority()
  private static let stranger = TestAuthority("another authority")

  private func server(
    _ files: TestAuthority.Files = authority.issue(), clients: TLSContext.ClientCertificates = .ignored,
    protocol name: String? = nil
  ) throws -> TLSContext {
    try TLSContext.server([try files.identity()], clients: clients, applicationProtocol: name)
  }

  private func client(_ files: TestAuthority.Files? = nil, protocol name: String? = nil) throws -> TLSContext {
    try TLSContext.client(
      trusting: Self.authority.trust(), identity: files?.identity(), applicationProtocol: name)
  }

  private func outcome(
    _ server: TLSContext, _ client: TLSContext, host: String = "localhost"
  ) throws -> TLSPair.Outcome {
    try TLSPair(server, client, host: host).shakeHands()
  }

  private static let done = TLSPair.Outcome(server: .done, client: .done)

  @Test(arguments: ["localhost", "127.0.0.1"])
  func `a name or an address in the certificate is accepted`(host: String) throws {
    #expect(try outcome(server(), client(), host: host) == Self.done)
  }

  @Test func `every kind of key works`() throws {
    for kind in [.p256, .ed25519, .rsa(bits: 2_048)] as [TestAuthority.KeyKind] {
      let files = Self.authority.issue(.init { $0.key = kind })
      #expect(try outcome(server(files), client()) == Self.done)
    }
  }

  @Test func `a chain with an intermediate authority is accepted`() throws {
    let intermediate = TestAuthority("intermediate", below: Self.authority)
    let identity = try intermediate.issue().identity(issuers: intermediate.files.certificate)
    #expect(try outcome(TLSContext.server([identity]), client()) == Self.done)
  }

  // MARK: Servers with a wrong certificate

  /// A certificate that is wrong in one way, and what the client says about it.
  struct WrongCertificate: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let reason: String
    let issue: @Sendable () throws -> TLSIdentity

    init(_ name: String, _ reason: String, _ profile: TestAuthority.Profile) {
      self.init(name, reason) { try authority.issue(profile).identity() }
    }

    init(_ name: String, _ reason: String, _ issue: @escaping @Sendable () throws -> TLSIdentity) {
      (testDescription, self.reason, self.issue) = (name, reason, issue)
    }
  }

  static let wrongCertificates = [
    WrongCertificate("expired", "certificate has expired", .init { ($0.validFrom, $0.validFor) = (-7_200, -3_600) }),
    WrongCertificate("not yet valid", "certificate is not yet valid", .init { $0.validFrom = 3_600 }),
    WrongCertificate("for another name", "hostname mismatch", .init { $0.names = ["DNS:db.example"] }),
    WrongCertificate("for a common name only", "hostname mismatch", .init("localhost") { $0.names = ["IP:::1"] }),
    WrongCertificate("for a partial wildcard", "hostname mismatch", .init { $0.names = ["DNS:local*"] }),
    WrongCertificate(
      "for clients only", "unsuitable certificate purpose", .init { $0.purposes = "clientAuth" }),
    WrongCertificate("self-signed", "self-signed certificate") { try TestAuthority.selfSigned().identity() },
    WrongCertificate("of an unknown authority", "unable to get local issuer certificate") {
      try stranger.issue().identity()
    },
    WrongCertificate("without its intermediate authority", "unable to get local issuer certificate") {
      try TestAuthority("intermediate", below: authority).issue().identity()
    },
    WrongCertificate("below an authority for other names", "permitted subtree violation") {
      let intermediate = TestAuthority("constrained", below: authority) {
        $0.nameConstraints = "permitted;DNS:example.com"
      }
      return try intermediate.issue().identity(issuers: intermediate.files.certificate)
    },
  ]

  @Test(arguments: wrongCertificates)
  func `a client refuses a server's wrong certificate and says why`(wrong: WrongCertificate) throws {
    let outcome = try outcome(TLSContext.server([wrong.issue()]), client())
    guard case .failed(.refused(let reason)) = outcome.client else {
      Issue.record("\(outcome)")
      return
    }
    #expect(reason.hasPrefix("the server's certificate is not accepted: \(wrong.reason)"))
    #expect(outcome.server != .done && outcome.server != .waiting)
  }

  @Test func `a certificate that was issued by one of no authority is refused`() throws {
    let impostor = TestAuthority("no authority") { $0.isAuthority = false }
    let client = try TLSContext.client(trusting: impostor.trust())
    guard case .failed(.refused(let reason)) = try outcome(server(impostor.issue()), client).client else {
      Issue.record("it was accepted")
      return
    }
    #expect(reason.contains("invalid CA certificate"))
  }

  @Test func `a server with a weak key or signature doesn't start`() throws {
    for (reason, profile) in [
      ("ee key too small", .init { $0.key = .rsa(bits: 1_024) }), ("ca md too weak", .init { $0.usesSHA1 = true }),
    ] as [(String, TestAuthority.Profile)] {
      #expect(throws: TLSError("can't use the certificate of CN=larder test: \(reason)")) {
        try server(Self.authority.issue(profile))
      }
    }
  }

  // MARK: Clients' certificates

  @Test func `a client's certificate names its principal`() throws {
    for (names, principal) in [
      (["DNS:web.example", "URI:spiffe://example/web"], "spiffe://example/web"),
      (["IP:127.0.0.1", "DNS:web.example"], "web.example"), (["IP:127.0.0.1"], "web"),
    ] {
      let files = Self.authority.issue(.init("web") { $0.names = names })
      for clients in [.optional(try Self.authority.trust()), .required(try Self.authority.trust())]
        as [TLSContext.ClientCertificates]
      {
        let pair = try TLSPair(server(clients: clients), client(files))
        #expect(pair.shakeHands() == Self.done)
        #expect(pair.server.peerCertificate?.principal == principal)
        #expect(pair.server.peerCertificate?.issuer == "CN=larder test authority")
      }
    }
  }

  @Test func `a server that ignores certificates learns no principal`() throws {
    let pair = try TLSPair(server(), client(Self.authority.issue()))
    #expect(pair.shakeHands() == Self.done)
    #expect(pair.server.peerCertificate == nil)
  }

  @Test func `a client without a certificate is accepted only if certificates are optional`() throws {
    #expect(try outcome(server(clients: .optional(Self.authority.trust())), client()) == Self.done)
    let pair = try TLSPair(server(clients: .required(Self.authority.trust())), client())
    let outcome = pair.shakeHands()
    #expect(outcome.server == .failed(.refused("the client has shown no certificate")))
    // In TLS 1.3 the client has completed its handshake by then, and reads the alert later.
    #expect(outcome.client == .done)
    guard case .failed(.refused(let reason)) = pair.client.receiveOnce().transfer else {
      Issue.record("the client was not refused")
      return
    }
    #expect(reason.hasPrefix("the server has refused the connection: it requires a client certificate"))
  }

  @Test func `a server refuses clients' wrong certificates, and both sides say why`() throws {
    let revoked = Self.authority.issue()
    let trust = try Self.authority.trust(revocations: Self.authority.revoke([revoked]))
    let cases: [(files: TestAuthority.Files, server: String, client: String)] = [
      (revoked, "certificate revoked", "our certificate is revoked"),
      (
        Self.authority.issue(.init { ($0.validFrom, $0.validFor) = (-7_200, -3_600) }), "certificate has expired",
        "our certificate has expired, or isn't valid yet"
      ),
      (
        Self.authority.issue(.init { $0.purposes = "serverAuth" }), "unsuitable certificate purpose",
        "it can't use our certificate"
      ),
      (
        Self.stranger.issue(), "unable to get local issuer certificate",
        "it doesn't know the authority that issued our certificate"
      ),
    ]
    for (files, serverReason, clientReason) in cases {
      let pair = try TLSPair(server(clients: .optional(trust)), client(files))
      let outcome = pair.shakeHands()
      guard case .failed(.refused(let reason)) = outcome.server,
        case .failed(.refused(let answer)) = pair.client.receiveOnce().transfer
      else {
        Issue.record("\(outcome)")
        continue
      }
      #expect(reason.hasPrefix("the client's certificate is not accepted: \(serverReason) (subject CN=larder test"))
      #expect(answer.hasPrefix("the server has refused the connection: \(clientReason)"))
    }
  }

  @Test func `an expired revocation list refuses everyone`() throws {
    let trust = try Self.authority.trust(revocations: Self.authority.revoke([], validFor: -60))
    let outcome = try outcome(server(clients: .required(trust)), client(Self.authority.issue()))
    guard case .failed(.refused(let reason)) = outcome.server else {
      Issue.record("\(outcome)")
      return
    }
    #expect(reason.contains("CRL has expired"))
  }

  // MARK: Pinned keys

  @Test func `a pinned key is accepted regardless of the issuer, and other keys are refused`() throws {
    let files = TestAuthority.selfSigned()
    let identity = try files.identity()
    let pinned = try TLSContext.client(trusting: TLSTrust(.keys([identity.certificate.keyDigest])))
    #expect(try outcome(TLSContext.server([identity]), pinned) == Self.done)
    guard case .failed(.refused(let reason)) = try outcome(server(), pinned).client else {
      Issue.record("another key was accepted")
      return
    }
    #expect(reason.hasPrefix("the server's certificate is not accepted: its key is not one of the expected keys"))
  }

  @Test func `a pinned key's certificate must still be for the server's name`() throws {
    let identity = try TestAuthority.selfSigned().identity()
    let pinned = try TLSContext.client(trusting: TLSTrust(.keys([identity.certificate.keyDigest])))
    let outcome = try outcome(TLSContext.server([identity]), pinned, host: "db.example")
    guard case .failed(.refused(let reason)) = outcome.client else {
      Issue.record("\(outcome)")
      return
    }
    #expect(reason.contains("hostname mismatch"))
  }

  // MARK: Names and protocols

  @Test func `a client gets the certificate of the server that it names`() throws {
    let identities = try ["a.example", "b.example", "*.c.example"].map { name in
      try Self.authority.issue(.init(name) { $0.names = ["DNS:\(name)"] }).identity()
    }
    let server = try TLSContext.server(identities)
    for host in ["a.example", "b.example", "x.c.example"] {
      #expect(try outcome(server, client(), host: host) == Self.done)
    }
    #expect(try outcome(server, client(), host: "d.example") != Self.done)
  }

  @Test func `both sides must name the same protocol if the server serves only one`() throws {
    #expect(try outcome(server(protocol: "larder/1"), client(protocol: "larder/1")) == Self.done)
    for other in [nil, "http/1.1"] {
      let outcome = try outcome(server(protocol: "larder/1"), client(protocol: other))
      guard case .failed(.refused(let reason)) = outcome.client else {
        Issue.record("\(outcome)")
        continue
      }
      #expect(reason.contains("it doesn't serve this protocol"))
      #expect(outcome.server != .done && outcome.server != .waiting)
    }
    #expect(try outcome(server(), client()) == Self.done)
    let outcome = try outcome(server(), client(protocol: "larder/1"))
    #expect(outcome.client == .failed(.refused("the server doesn't serve the protocol larder/1")))
  }

  // MARK: Configurations

  @Test func `files that don't fit together are refused with the reason`() throws {
    let (one, other) = (Self.authority.issue(), Self.authority.issue())
    let names = (chain: "server.pem", key: "server.key")
    let cases: [(chain: [UInt8], key: [UInt8], error: String)] = [
      (one.certificate, other.key, "server.key is not the key of the first certificate in server.pem"),
      ([], one.key, "server.pem: there is no certificate in PEM form (-----BEGIN CERTIFICATE-----)"),
      (one.certificate, [], "server.key: there is no private key in PEM form (-----BEGIN PRIVATE KEY-----)"),
      (Array(one.certificate.dropLast(60)), one.key, "server.pem: a certificate is malformed"),
      (
        one.certificate + other.certificate, one.key,
        "server.pem: after the certificate of CN=larder test, the one of its issuer must follow, but CN=larder test "
          + "did not issue it"
      ),
    ]
    for (chain, key, error) in cases {
      #expect(throws: TLSError(error)) { try TLSIdentity(chain: chain, key: key, names: names) }
    }
  }
}
