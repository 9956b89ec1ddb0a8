import Documents

/// Who a client is to a server, and what it may do there.
public struct ClientIdentity: Hashable, Sendable {
  /// How a client has proved who it is.
  public enum Proof: String, Sendable {
    case certificate, token
  }

  /// A right that access rules grant.
  public struct GrantedRight: Hashable, Sendable {
    /// Each right includes those before it.
    public enum Level: String, Sendable {
      case read, write, admin
    }

    public let level: Level
    /// The store; nil for all stores and the server.
    public let store: String?
    /// What keys begin with that the right is to; nil for the whole store.
    public let keyPrefix: String?
  }

  /// The owner of the client's certificate or token; nil if it has neither.
  public let principal: String?
  /// How the client has proved that it is the principal; nil if it has no principal.
  public let proof: Proof?
  /// The id of the user whose process this is; nil if the connection is not a Unix socket.
  public let user: UInt32?
  /// What the client may do. Rights to a store add up.
  public let rights: [GrantedRight]

  /// - Returns: Nil if the server's description is malformed.
  init?(_ json: JSONValue) {
    guard let listed = json["rights"]?.array else { return nil }
    principal = json["principal"]?.string
    proof = json["proof"]?.string.flatMap(Proof.init)
    user = json["user"]?.integer.flatMap(UInt32.init(exactly:))
    rights = listed.compactMap(GrantedRight.init)
    guard rights.count == listed.count else { return nil }
  }
}

extension ClientIdentity {
  /// The identity as an object: `Protocol/wire.md` §6.14.
  package var json: JSONValue {
    var json: JSONValue = [:]
    json["principal"] = principal.map { .string($0) }
    json["proof"] = proof.map { .string($0.rawValue) }
    json["user"] = user.map { .integer(Int64($0)) }
    json["rights"] = .array(rights.map(\.json))
    return json
  }
}

extension ClientIdentity.GrantedRight {
  fileprivate var json: JSONValue {
    var json: JSONValue = ["right": .string(level.rawValue)]
    json["store"] = store.map { .string($0) }
    json["keyPrefix"] = keyPrefix.map { .string($0) }
    return json
  }

  fileprivate init?(_ json: JSONValue) {
    guard let level = json["right"]?.string.flatMap(Level.init) else { return nil }
    (self.level, store, keyPrefix) = (level, json["store"]?.string, json["keyPrefix"]?.string)
  }
}
