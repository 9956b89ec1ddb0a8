/// A right to a store or to the server: `Protocol/wire.md` §10. Each includes those before it.
public enum Right: UInt8, Comparable, CaseIterable, Sendable {
  case nothing, read, write, admin

  @inlinable
  public static func < (left: Right, right: Right) -> Bool { left.rawValue < right.rawValue }
}

/// What an operation is, apart from what it does: the only place that says so.
public struct OperationDescriptor: Sendable {
  /// What a request is about.
  public enum Target: Sendable {
    /// The connection itself.
    case connection
    case server
    /// A store that the body names.
    case namedStore
    /// An open store.
    case store
    /// An open store, or the server if the request names none.
    case storeOrServer
    /// The entries of an open store, whose lock is held while the request is executed.
    case entries
    /// The documents or the indexes of an open store, which takes too long for its lock.
    case documents
  }

  /// What a request needs a right to.
  public enum Scope: Sendable {
    /// The server.
    case server
    /// All of the store, or the server if the request names none.
    case store
    /// At least some of the store's entries.
    case storeInPart
    /// The entries with the keys that the request names, or whose keys begin with the prefix that it names.
    case keys
  }

  public let target: Target
  /// The right that a request needs, whatever it does.
  public let right: Right
  /// The right without which no request is permitted.
  public let minRight: Right
  public let scope: Scope
  /// The feature that a client asks for in its hello in order to use the operation; 0 for none.
  public let feature: UInt32
  /// Whether it changes no entry, index or store, so that it can be repeated.
  public let isRead: Bool
  /// Whether a request takes little time for its size and that of its reply.
  public let isShort: Bool
  fileprivate init(
    _ target: Target, _ right: Right, _ scope: Scope, orElse minRight: Right? = nil, feature: UInt32 = 0,
    isRead: Bool = false, isShort: Bool = false
  ) {
    self.target = target
    self.right = right
    self.minRight = minRight ?? right
    self.scope = scope
    self.feature = feature
    self.isRead = isRead
    self.isShort = isShort
  }

  /// Whether a request names the store by its handle.
  public var takesStore: Bool {
    switch target {
    case .store, .entries, .documents: true
    case .connection, .server, .namedStore, .storeOrServer: false
    }
  }
}

extension Operation {
  public var descriptor: OperationDescriptor {
    switch self {
    case .hello: OperationDescriptor(.connection, .nothing, .server)
    case .credit: OperationDescriptor(.connection, .nothing, .server)
    case .cancel: OperationDescriptor(.connection, .nothing, .server)
    case .ping: OperationDescriptor(.server, .nothing, .server, isRead: true)
    case .stats: OperationDescriptor(.storeOrServer, .read, .store, isRead: true)
    case .slowLog: OperationDescriptor(.server, .admin, .server, isRead: true)
    case .connections: OperationDescriptor(.server, .admin, .server, isRead: true)
    case .storeOpen: OperationDescriptor(.namedStore, .read, .storeInPart, isRead: true)
    case .storeClose: OperationDescriptor(.store, .nothing, .store)
    case .storeCreate: OperationDescriptor(.namedStore, .admin, .store)
    case .storeList: OperationDescriptor(.server, .nothing, .server, isRead: true)
    case .storeDrop: OperationDescriptor(.namedStore, .admin, .store)
    case .indexEnsure: OperationDescriptor(.documents, .admin, .store, feature: Features.documents)
    case .indexDelete: OperationDescriptor(.documents, .admin, .store, feature: Features.documents)
    case .indexList: OperationDescriptor(.documents, .read, .store, feature: Features.documents, isRead: true)
    case .getRange: OperationDescriptor(.entries, .read, .keys, feature: Features.ranges, isRead: true, isShort: true)
    case .get: OperationDescriptor(.entries, .read, .keys, isRead: true, isShort: true)
    case .getMany: OperationDescriptor(.entries, .read, .keys, isRead: true)
    case .put: OperationDescriptor(.entries, .write, .keys, isShort: true)
    case .putMany: OperationDescriptor(.entries, .write, .keys)
    case .delete: OperationDescriptor(.entries, .write, .keys, isShort: true)
    case .deleteMany: OperationDescriptor(.entries, .write, .keys)
    case .deleteAll: OperationDescriptor(.entries, .write, .store)
    case .count: OperationDescriptor(.entries, .read, .keys, isRead: true, isShort: true)
    case .page: OperationDescriptor(.entries, .read, .keys, isRead: true)
    case .all: OperationDescriptor(.entries, .read, .keys, isRead: true)
    case .watch: OperationDescriptor(.entries, .read, .keys, isRead: true)
    case .find: OperationDescriptor(.documents, .read, .store, feature: Features.documents, isRead: true)
    case .aggregate: OperationDescriptor(.documents, .read, .store, feature: Features.documents, isRead: true)
    case .changeMatching: OperationDescriptor(.documents, .write, .store, feature: Features.documents)
    // One that only checks entries reads them.
    case .apply: OperationDescriptor(.entries, .write, .keys, orElse: .read, feature: Features.documents)
    case .uploadBegin: OperationDescriptor(.store, .write, .storeInPart, feature: Features.uploads, isRead: true)
    case .uploadPart: OperationDescriptor(.connection, .nothing, .server, feature: Features.uploads, isRead: true)
    case .uploadPut: OperationDescriptor(.entries, .write, .keys, feature: Features.uploads)
    case .whoami: OperationDescriptor(.server, .nothing, .server, feature: Features.rights, isRead: true)
    case .rulesCheck: OperationDescriptor(.server, .admin, .server, feature: Features.rights, isRead: true)
    case .tokenList: OperationDescriptor(.server, .admin, .server, feature: Features.rights, isRead: true)
    case .consoleLink: OperationDescriptor(.server, .nothing, .server, feature: Features.consoles, isRead: true)
    case .cluster: OperationDescriptor(.server, .admin, .server, feature: Features.clusters, isRead: true)
    case .storeMove: OperationDescriptor(.namedStore, .admin, .store, feature: Features.clusters)
    case .storeOpenStale:
      OperationDescriptor(.namedStore, .read, .storeInPart, feature: Features.clusters, isRead: true)
    case .uploadDiscard: OperationDescriptor(.connection, .nothing, .server, feature: Features.uploads, isRead: true)
    }
  }
}
