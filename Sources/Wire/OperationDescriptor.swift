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

  public let target: Target
  /// The right that a request needs, to the store if there is one.
  public let right: Right
  /// The feature that a client asks for in its hello in order to use the operation; 0 for none.
  public let feature: UInt32
  /// Whether it changes no entry, index or store, so that it can be repeated.
  public let isRead: Bool
  /// Whether a request takes little time for its size and that of its reply.
  public let isShort: Bool
  fileprivate init(
    _ target: Target, _ right: Right, feature: UInt32 = 0, isRead: Bool = false, isShort: Bool = false
  ) {
    self.target = target
    self.right = right
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
    case .hello: OperationDescriptor(.connection, .nothing)
    case .credit: OperationDescriptor(.connection, .nothing)
    case .cancel: OperationDescriptor(.connection, .nothing)
    case .ping: OperationDescriptor(.server, .nothing, isRead: true)
    case .stats: OperationDescriptor(.storeOrServer, .read, isRead: true)
    case .slowLog: OperationDescriptor(.server, .admin, isRead: true)
    case .connections: OperationDescriptor(.server, .admin, isRead: true)
    case .storeOpen: OperationDescriptor(.namedStore, .read, isRead: true)
    case .storeClose: OperationDescriptor(.store, .nothing)
    case .storeCreate: OperationDescriptor(.namedStore, .admin)
    case .storeList: OperationDescriptor(.server, .nothing, isRead: true)
    case .storeDrop: OperationDescriptor(.namedStore, .admin)
    case .indexEnsure: OperationDescriptor(.documents, .admin, feature: Features.documents)
    case .indexDelete: OperationDescriptor(.documents, .admin, feature: Features.documents)
    case .indexList: OperationDescriptor(.documents, .read, feature: Features.documents, isRead: true)
    case .getRange: OperationDescriptor(.entries, .read, feature: Features.ranges, isRead: true, isShort: true)
    case .get: OperationDescriptor(.entries, .read, isRead: true, isShort: true)
    case .getMany: OperationDescriptor(.entries, .read, isRead: true)
    case .put: OperationDescriptor(.entries, .write, isShort: true)
    case .putMany: OperationDescriptor(.entries, .write)
    case .delete: OperationDescriptor(.entries, .write, isShort: true)
    case .deleteMany: OperationDescriptor(.entries, .write)
    case .deleteAll: OperationDescriptor(.entries, .write)
    case .count: OperationDescriptor(.entries, .read, isRead: true, isShort: true)
    case .page: OperationDescriptor(.entries, .read, isRead: true)
    case .all: OperationDescriptor(.entries, .read, isRead: true)
    case .watch: OperationDescriptor(.entries, .read, isRead: true)
    case .find: OperationDescriptor(.documents, .read, feature: Features.documents, isRead: true)
    case .aggregate: OperationDescriptor(.documents, .read, feature: Features.documents, isRead: true)
    case .changeMatching: OperationDescriptor(.documents, .write, feature: Features.documents)
    case .apply: OperationDescriptor(.entries, .write, feature: Features.documents)
    case .uploadBegin: OperationDescriptor(.store, .write, feature: Features.uploads, isRead: true)
    case .uploadPart: OperationDescriptor(.connection, .nothing, feature: Features.uploads, isRead: true)
    case .uploadPut: OperationDescriptor(.entries, .write, feature: Features.uploads)
    case .uploadDiscard: OperationDescriptor(.connection, .nothing, feature: Features.uploads, isRead: true)
    }
  }
}
