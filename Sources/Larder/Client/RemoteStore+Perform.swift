// A transaction:
//
// 1. `RemoteStore+Perform` runs the closure with a new context. Each read of `TransactionContext` is a call of its own,
//    and notes the revisions of what it returns; writes are kept.
// 2. When the closure has returned, the context makes a batch (`WriteBatch`) of checks and writes, and sends it as one
//    request (`ApplyRequest`).
// 3. `Executor+Apply` checks all conditions and executes the puts and deletes under one acquisition of the store's
//    lock. They have one revision, so they are one record of the commit.
// 4. A batch of more than 1,024 operations or 1 MiB becomes a large commit; see the next walkthrough. If a batch has
//    updates, `ApplyChanges` makes the new values first. Where that may take long, or values are only on the disk,
//    `ApplyTask` does so in the turns of a job, without the lock, and commits if nobody has written the entries
//    meanwhile.
// 5. If a condition does not hold, nothing is written, and `perform` starts over or throws.

extension RemoteStore {
  /// Runs a closure whose reads and writes of this store take effect together, as if no other client used the store
  /// meanwhile.
  ///
  ///     try await accounts.perform(retries: 10) { context in
  ///       guard var alice = try await context.get("alice", as: Account.self),
  ///         var bob = try await context.get("bob", as: Account.self)
  ///       else { throw UnknownAccount() }
  ///       alice.balance -= 10
  ///       bob.balance += 10
  ///       try context.put("alice", alice)
  ///       try context.put("bob", bob)
  ///     }
  ///
  /// The context notes the revision of each entry that the closure reads, and the keys that it finds absent. When the
  /// closure returns, one request writes everything, on condition that what was read is still the same. No lock is held
  /// while the closure runs. If it throws, nothing is written.
  ///
  /// Only a closure that returns is known to have seen the store at one point in time. While it runs, it may see one
  /// entry as it was before another client's request and a second one as it is after. If it throws an error because of
  /// that, the error is thrown as it is.
  ///
  /// A closure that makes one read and no write sends nothing more. Any other needs the right to write, even if it only
  /// reads.
  ///
  /// Documents that begin to match a query of the closure meanwhile are not noticed, neither new ones nor others that
  /// did not match before. Where that matters, let the closure also read and write an entry that every such writer
  /// writes.
  ///
  /// Only what goes through the context is part of the transaction. The closure should do nothing else that can't be
  /// repeated. What it reads and writes is limited to as many keys as the server takes in one request, 65,536 by
  /// default; a closure that makes one read and no write is not limited.
  /// - Parameters:
  ///   - retries: The number of times that the closure runs again, after a short random pause, if others have written
  ///     what it read.
  ///   - body: The closure. It must not keep the context.
  /// - Returns: What the closure returns.
  /// - Throws: What the closure throws; `conditionFailed` if others have written what it read, in which case nothing
  ///   was written, `isSafeToRetry` is true, and the call can be repeated; and the other errors of `apply(_:)`.
  public func perform<Result>(
    retries: Int = 0, isolation: isolated (any Actor)? = #isolation,
    _ body: (TransactionContext) async throws -> Result
  ) async throws -> Result {
    let backoff = Backoff(base: .milliseconds(2), cap: .milliseconds(50))
    var conflicts = 0
    while true {
      let context = TransactionContext(self)
      do {
        let result = try await body(context)
        try await context.commit()
        return result
      } catch {
        context.cancel()
        guard context.hasConflict, conflicts < retries else { throw error }
        conflicts += 1
        let pause = backoff.milliseconds(afterFailures: conflicts)
        try await Task.sleep(for: .milliseconds(Int64(pause)))
      }
    }
  }
}
