import Documents
import Platform
import Storage
import Wire

/// A question that an administrator asks: what would happen if a client asked for an operation? `Protocol/wire.md` §6.14.
struct RightsQuestion {
  /// A process on this machine; without credentials, any other client.
  let client: ClientIdentity
  /// The owner of a certificate or a token that the client has; nil if it has none.
  let principal: String?
  let operation: Operation
  /// nil for an operation on the server.
  let store: StoreName?
  /// A key, or the beginning of all keys; nil for the whole store.
  let key: [UInt8]?

  /// Reads the question from JSON text.
  init(_ text: [UInt8]) throws(CommandFailure) {
    let json: JSONValue
    do throws(JSONError) { json = try JSONValue(parsingInstruction: text.span) } catch {
      throw CommandFailure(.illegalArgument, "\(error)")
    }
    try self.init(json)
  }

  private init(_ json: JSONValue) throws(CommandFailure) {
    guard let operation = Operation.allCases.first(where: { $0.name == json["operation"]?.string }) else {
      throw CommandFailure(.illegalArgument, "\"operation\" must be the name of an operation, as in \"get\"")
    }
    self.operation = operation
    principal = json["principal"]?.string
    client = ClientIdentity(credentials: try Self.credentials(json))
    if let name = json["store"]?.string {
      do throws(StorageError) { store = try StoreName(name) } catch { throw CommandFailure(error) }
    } else {
      store = nil
    }
    key = json["key"]?.string.map { Array($0.utf8) }
    guard store != nil || operation == .stats || operation.descriptor.scope == .server else {
      throw CommandFailure(.illegalArgument, "\(operation.name) is an operation on a store: name it")
    }
  }

  private static func credentials(_ json: JSONValue) throws(CommandFailure) -> Credentials? {
    guard let user = json["user"] else { return nil }
    let groups = json["groups"]?.array ?? []
    let numbers = ([user] + groups).compactMap { $0.integer.flatMap(UInt32.init(exactly:)) }
    guard numbers.count == groups.count + 1 else {
      throw CommandFailure(.illegalArgument, "\"user\" and \"groups\" must be numbers of a user and its groups")
    }
    return Credentials(
      process: 0, user: numbers[0], group: numbers.count > 1 ? numbers[1] : .max,
      supplementaryGroups: Array(numbers.dropFirst()))
  }

  /// Whether the client can connect to a socket: a process to Unix sockets, a principal to any, and an anonymous client to
  /// TCP sockets.
  func canBeAsked(on address: Address) -> Bool {
    switch address {
    case .unix: client.credentials != nil || principal != nil
    case .tcp, .tls: client.credentials == nil
    }
  }

  /// Whether a client with certain rights may do what the question is about.
  func isPermitted(by grants: Grants) -> Bool {
    let right = operation.descriptor.right
    guard let store, operation.descriptor.scope != .server else { return grants.onAll >= right }
    let rights = grants.rights(to: store)
    guard operation.descriptor.scope == .keys, let key else { return rights.permit(operation.descriptor) }
    return unsafe rights.right(to: key.span.bytes) >= right
  }
}

/// The answer to a question, for one listener.
struct RightsDecision {
  let listener: Listener
  let isPermitted: Bool
  /// The rule that permits it, and its position among all, from 1; nil if none does or is needed.
  var rule: (number: Int, rule: AccessRule)?

  var json: JSONValue {
    var json: JSONValue = ["listener": .string("\(listener)"), "permitted": .bool(isPermitted)]
    if let rule {
      json["rule"] = .string("\(rule.rule)")
      json["number"] = .integer(Int64(rule.number))
    }
    return json
  }
}
