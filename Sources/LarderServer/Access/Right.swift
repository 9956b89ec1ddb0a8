import Wire

/// What somebody may do with a store or with the server. Each right has those before it.
package enum Right: Comparable, CaseIterable, Sendable {
  case nothing, read, write, admin
}

extension Operation {
  /// The right that a request needs: `Protocol/wire.md` §10.
  var right: Right {
    switch self {
    case .hello, .credit, .cancel, .ping, .storeClose, .storeList: .nothing
    case .stats, .storeOpen, .get, .getMany, .count, .page, .all, .watch: .read
    case .put, .putMany, .delete, .deleteMany, .deleteAll: .write
    case .storeCreate, .storeDrop, .slowLog, .connections: .admin
    }
  }

  /// Whether which store a request means is known only once its body is read. Requests without a store are on the server.
  var namesStoreInBody: Bool {
    switch self {
    case .storeOpen, .storeCreate, .storeDrop: true
    default: false
    }
  }
}

/// Operations on entries, so that whether one is permitted is a look at a bit.
struct OperationSet: Equatable, Sendable {
  private var bits: UInt64 = 0

  /// What a right permits.
  init(_ right: Right) {
    for operation in Operation.allCases where Batch.isOnEntries(operation.rawValue) && operation.right <= right {
      bits |= 1 << UInt64(operation.rawValue)
    }
  }

  @inline(__always)
  func contains(_ kind: UInt8) -> Bool { bits >> UInt64(kind) & 1 != 0 }
}
