import Storage
import Wire

extension ErrorCode {
  /// The one place where the storage layer's errors get their codes of the wire.
  init(_ error: StorageError) {
    self =
      switch error {
      case .invalidStoreName, .unknownEngine, .invalidOption, .noDataDirectory: .illegalArgument
      case .storeExists: .storeExists
      case .unknownStore, .storeDropped: .storeUnknown
      case .tooManyStores: .tooManyStores
      case .snapshotEnded: .answerExpired
      case .storeFull, .outOfMemory, .diskFull: .storeFull
      case .overLimit: .valueTooLarge
      case .diskTooSlow: .tooManyRequests
      case .readOnly: .storeReadOnly
      case .unreadable: .failed
      }
  }
}
