// What happens to a full disk:
//
// Engines reserve space ahead of need (`Engine.reserveSpace`, on the commit thread), and a write is accepted only if
// its record fits. On a full disk, reserving fails with `noSpace`, so writes fail with `storeFull` before they change
// anything; reads go on. The commit thread tries again twice a second, and writes go on once there is space. A
// directory store isn't full while its settling thread can still remove journals: until then, writes wait.

// What happens when an engine needs something outside of the process, and that is unavailable:
//
// A call throws `transient`. The commit writer keeps the commits that it took, and tries again with the same records
// after 100 ms to 2 s. From the first failure on, writes fail with `engineUnavailable` before they change anything, so
// what is pending stays below the reserved space. Replies to earlier writes wait, and reads go on. Once a call succeeds
// and all pending commits are written, the store accepts writes again. If it is to stop before that, the engine gets one
// last attempt; then the pending commits fail as on a failed disk.

import Basics
import Platform

/// What keeps the commits of one store: its files, or whatever else survives the process.
///
/// A new engine conforms to this protocol, and an `EngineKind` describes it; no other code names it. One thread at a time
/// uses an engine: the thread of its store's `CommitWriter`. Only `figures` and `syncTimes` may be read from any
/// thread. After a call has thrown `failed`, nothing is written to the engine any more.
package protocol Engine: AnyObject {
  /// The number of bytes of records that are certain to fit, because their space is already allocated.
  var reservedByteCount: Int { get }

  /// The number of these bytes that only commits without puts may use, so that entries can be deleted on a full disk.
  /// It never changes.
  var removalReserveByteCount: Int { get }

  /// Whether calls wait for something outside of the process, such as another computer. The watchdog then doesn't take
  /// that for a hang. Each call must return in bounded time all the same, with `transient` if need be. It never changes.
  var waitsOutside: Bool { get }

  /// Allocates more space ahead of need.
  /// - Throws: `noSpace`, after which the caller may try again, `failed` or `transient`.
  func reserveSpace() throws(EngineError)

  /// Whether `reserveSpace` has only begun to allocate space. The engine wakes the context of `performMaintenance` when
  /// another call returns the result.
  var isReservingSpace: Bool { get }

  /// Whether the engine has reserved more space than it wants to keep.
  var hasUnneededSpace: Bool { get }

  /// Gives up that space. Only here may `reservedByteCount` decrease by more than what is written, because the caller has
  /// the store's lock, and there are no commits that the engine hasn't written. Makes no system call.
  func releaseSpace()

  /// Writes sealed records (`CommitBuffer`) in the order of their revisions.
  /// - Parameters:
  ///   - last: The revision of the last record.
  ///   - separatedCount: The number of separated values in the records.
  ///   - syncs: Whether the records must be on disk when this returns.
  /// - Returns: The locations of the separated values, in order, if the store may read the values from there instead of
  ///   keeping them in memory.
  /// - Throws: `failed`. The state of the records is then unknown. Or `transient`, after which the next call is a write of
  ///   the same records, and must not keep those twice that have arrived.
  func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [ValueLocation]

  /// Makes everything written durable. An engine may do that on another thread, and then reports a failure at the next
  /// call. `close` waits for it.
  func sync() throws(EngineError)

  /// Does a bounded piece of work that can wait, such as compaction. The commit thread calls this when it has nothing
  /// else to do.
  /// - Returns: Whether there is more to do.
  func performMaintenance(_ context: any MaintenanceContext) throws(EngineError) -> Bool

  /// Stops all work on other threads, and waits until it has stopped.
  func stopBackgroundWork()

  /// Closes the engine in order, after `stopBackgroundWork`. Nothing is written afterwards.
  func close() throws(EngineError)

  /// The figures for the store's statistics, by their names in `Protocol/wire.md`. Safe to read from any thread.
  var figures: [(name: String, value: UInt64)] { get }

  /// The times that the disk took to sync; nil if the engine doesn't measure them.
  var syncTimes: DurationHistogram? { get }

  /// What the server must hold to answer reads; nil for a store that no other server can take over. It never changes.
  var lease: Lease? { get }

  /// Whether another server has taken the store over, or could have. It never becomes false again. Safe to read from any
  /// thread.
  var hasLostStore: Bool { get }

  /// Where the store's indexes and history are recorded, if not in the data directory. It never changes.
  var records: (any StoreRecords)? { get }
}

extension Engine {
  package var lease: Lease? { nil }
  package var hasLostStore: Bool { false }
  package var records: (any StoreRecords)? { nil }
  package var waitsOutside: Bool { false }
  package var removalReserveByteCount: Int { 0 }
  package var isReservingSpace: Bool { false }
  package var hasUnneededSpace: Bool { false }
  package func releaseSpace() {}
  package var syncTimes: DurationHistogram? { nil }
}

/// Why an engine can't write.
package enum EngineError: Error, Equatable, Sendable {
  /// The disk is full, or the process has no file descriptors left.
  case noSpace
  /// A call failed with an unknown outcome, or in a way that rules out a retry: which call, on what, and why.
  case failed(String)
  /// What the engine needs is unavailable for now: what, and why. The same call may succeed later.
  case transient(String)
}

/// What an engine's maintenance may see and do of its store. Safe to use from any thread.
package protocol MaintenanceContext: AnyObject, Sendable {
  /// Runs `body` with read access to the map, under the store's lock. Keep it short.
  func read<Result>(_ body: (borrowing EntryMap) -> sending Result) -> sending Result

  /// Records the new locations of separated values, in the order in which the values were written.
  func updateLocations(_ values: [ValueLocation])

  /// Makes the commit thread call `performMaintenance` again.
  func wake()

  /// Takes a snapshot, which stays until `endSnapshot`; nil while a large commit is being made.
  func takeSnapshot() -> Snapshot?

  /// Adds records of the entries of a snapshot, in the order of their keys, until the buffer has that many bytes.
  /// - Parameter rank: That of the first entry.
  /// - Returns: The rank of the next entry.
  func addRecords(
    of snapshot: Snapshot, from rank: Int, to buffer: inout CommitBuffer, upTo byteCount: Int
  ) throws(StorageError) -> Int

  func endSnapshot(_ snapshot: Snapshot)
}

/// The store whose commits a `CommitWriter` makes durable.
package protocol CommitSource: MaintenanceContext {
  /// Runs `body` with exclusive access to the map, under the store's lock.
  func access<Result, Failure: Error>(
    _ body: (inout EntryMap) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result
}
