import Storage
import Wire

/// Refusals: `Protocol/wire.md` §10.
extension Batch {
  /// What the hello of a client is refused with, whom no rule names.
  static let use = "use this server"

  mutating func refuse(_ action: String, _ id: UInt32, _ connection: borrowing Connection, _ server: ServerState) {
    fail(.notPermitted, id, server.refuse(action, connection))
  }

  /// Whether a connection may do with a store what an operation does; otherwise the refusal is in the output.
  mutating func permits(
    _ operation: Operation, on store: StoreName, _ id: UInt32, _ connection: borrowing Connection, _ server: ServerState
  ) -> Bool {
    if connection.grants.right(on: store) >= operation.right { return true }
    let action =
      switch operation {
      case .storeCreate: "create"
      case .storeDrop: "drop"
      default: operation.right == .read ? "read" : "write to"
      }
    refuse("\(action) store \(store)", id, connection, server)
    return false
  }

  /// Whether a connection may do with the server what an operation does; otherwise the refusal is in the output.
  mutating func permits(
    _ operation: Operation, _ id: UInt32, _ connection: borrowing Connection, _ server: ServerState
  ) -> Bool {
    if connection.grants.onAll >= operation.right { return true }
    refuse("ask the server for \(operation.name)", id, connection, server)
    return false
  }
}
