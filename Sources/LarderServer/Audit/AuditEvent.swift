import Documents
import Platform

/// Something that concerns who may do what, or that an administrator has done.
package struct AuditEvent: Sendable {
  /// What has happened. The raw values are the names in JSON, which don't change.
  package enum Kind: String, CaseIterable, Sendable {
    /// A client was let in, after it had proved who it is if it had to.
    case authenticated
    /// A client's token or handshake was not accepted.
    case authenticationFailed = "authentication-failed"
    /// A client had no right to what it asked for.
    case refused
    case storeCreated = "store-created"
    case storeDropped = "store-dropped"
    case storeMoved = "store-moved"
    /// All entries of a store were deleted.
    case storeEmptied = "store-emptied"
    case indexCreated = "index-created"
    case indexDeleted = "index-deleted"
    /// A client of RESP has changed a parameter.
    case parameterChanged = "parameter-changed"
    /// The configuration was read again.
    case reloaded
    case tokenAdded = "token-added"
    case tokenRemoved = "token-removed"
    /// There were more events than could be written.
    case eventsLost = "events-lost"
  }

  package let kind: Kind
  /// In microseconds since 1970.
  package let time: Int
  /// Who did it; nil if it was no client.
  package let client: AuditClient?
  package let store: String?
  /// What it was done to, or with: an index, an engine, a parameter, the changed settings, or the name of a token.
  package let object: String?
  /// Why it failed, or what a client asked for; nil if it was done.
  package let reason: String?
  /// The number of events that this one stands for; nil for one.
  package let count: Int?

  package init(
    _ kind: Kind, _ client: AuditClient? = nil, store: String? = nil, object: String? = nil, reason: String? = nil,
    count: Int? = nil
  ) {
    (self.kind, self.client, self.store, self.object, self.reason, self.count) =
      (kind, client, store, object, reason, count)
    time = WallClock.microseconds()
  }

  /// Whether nothing came of it.
  package var isFailure: Bool { kind == .refused || kind == .authenticationFailed || reason != nil }

  /// The event as an object without its time.
  package var json: JSONValue {
    var json: JSONValue = ["event": .string(kind.rawValue), "outcome": isFailure ? "failed" : "done"]
    if let client { json.add(client) }
    json["store"] = store.map { .string($0) }
    json["object"] = object.map { .string($0) }
    json["reason"] = reason.map { .string($0) }
    json["count"] = count.map { .integer(Int64($0)) }
    return json
  }
}

/// Who a client is, as far as its server knows.
package struct AuditClient: Equatable, Sendable {
  package let listener: Listener
  /// Where it is.
  package let peer: Peer
  /// The number of its connection; nil before there is one.
  package let connection: UInt64?
  /// The owner of its token, or that of its certificate.
  package let principal: String?
  package let hasToken: Bool
  package let certificate: PeerCertificate?

  init(
    listener: Listener, peer: Peer, connection: UInt64? = nil,
    tokenOwner: String? = nil, certificate: PeerCertificate? = nil
  ) {
    (self.listener, self.peer, self.connection) = (listener, peer, connection)
    (principal, hasToken) = (tokenOwner ?? certificate?.principal, tokenOwner != nil)
    self.certificate = certificate
  }
}

extension JSONValue {
  fileprivate mutating func add(_ client: AuditClient) {
    if let principal = client.principal {
      self["principal"] = .string(principal)
      self["proof"] = client.hasToken ? "token" : "certificate"
    }
    if let certificate = client.certificate {
      self["certificateSerial"] = .string(certificate.serial)
      self["certificateIssuer"] = .string(certificate.issuer)
    }
    switch client.peer {
    case .process(let id, let user):
      self["user"] = .integer(Int64(user))
      self["process"] = .integer(Int64(id))
    case .address(let address): self["address"] = .string(address)
    case .unknown: break
    }
    self["listener"] = .string("\(client.listener)")
    self["connection"] = client.connection.map { .integer(Int64($0)) }
  }
}
