import Storage

/// Where answers wait until the commits are durable that they tell of: nobody learns of what a crash can take back.
struct Gate {
  let commitWriter: CommitWriter
  var revision: UInt64

  /// Whether the answers can go on: to the client, or to be made errors of, if the journal has failed.
  var isOpen: Bool { commitWriter.isDurable(revision) || commitWriter.failure != nil }

  /// Why they can't be sent as they are; nil when they can.
  var failure: StorageError? { commitWriter.isDurable(revision) ? nil : commitWriter.failure }
}
