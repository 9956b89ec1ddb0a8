import Storage
import Wire

/// Where the storage layer's terms become those of the wire protocol, and back.

extension ErrorCode {
  /// The protocol's code for an error of the storage layer. This is the only place that maps them.
  init(_ error: StorageError) {
    self =
      switch error {
      case .invalidStoreName, .unknownEngine, .invalidOption, .noDataDirectory, .indexesTooLarge: .illegalArgument
      case .storeExists: .storeExists
      case .unknownStore, .storeDropped: .storeUnknown
      case .servedElsewhere: .notLeader
      case .tooManyStores: .tooManyStores
      case .indexExists: .indexExists
      case .unknownIndex: .indexUnknown
      case .tooManyIndexes: .tooManyIndexes
      case .snapshotEnded: .answerExpired
      case .storeFull, .memoryLimit, .outOfMemory, .diskFull: .storeFull
      case .overLimit: .valueTooLarge
      case .diskTooSlow, .commitPending, .engineUnavailable: .tooManyRequests
      case .readOnly, .revisionsUsedUp: .storeReadOnly
      case .unreadable: .failed
      case .storeDamaged: .storeDamaged
      }
  }
}

extension EntryKind {
  @inline(__always)
  init(_ kind: ValueKind) {
    switch kind {
    case .single: self = .single
    case .list: self = .list
    }
  }
}

extension ValueKind {
  @inline(__always)
  init(_ kind: EntryKind) {
    switch kind {
    case .single: self = .single
    case .list: self = .list
    }
  }
}

extension ChangeKind {
  /// - Precondition: The kind isn't `expiry`, because watches don't report expiries.
  init(_ kind: ChangeView.Kind) {
    self =
      switch kind {
      case .single: .single
      case .list: .list
      case .delete: .deleted
      case .deleteAll: .allDeleted
      case .expiry: preconditionFailure("an expiry is not a change of a watch")
      }
  }
}

extension StorageError {
  /// Whether it depends on what is in the store. If not, a client may get it before pending commits are durable.
  var revealsContents: Bool { if case .engineUnavailable = self { false } else { true } }
}
