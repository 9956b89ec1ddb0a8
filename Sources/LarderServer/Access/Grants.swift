import Storage

/// What a connection may do.
struct Grants: Equatable, Sendable {
  /// With the server and with every store.
  var onAll = Right.nothing
  /// With single stores, beyond that.
  var onStores: [StoreName: Right] = [:]

  static let everything = Grants(onAll: .admin)

  var isNothing: Bool { onAll == .nothing && onStores.isEmpty }

  func right(on store: StoreName) -> Right { max(onAll, onStores[store] ?? .nothing) }

  mutating func add(_ rule: AccessRule) {
    if let store = rule.store {
      onStores[store] = max(rule.right, onStores[store] ?? .nothing)
    } else {
      onAll = max(rule.right, onAll)
    }
  }
}
