import Storage

/// A task that changes entries, and whose changes may take too long for one acquisition of the store's lock.
///
/// `TaskCommit` calls these functions on the thread of large commits, after `end` has returned `needsCommit` and before
/// it is called again. They do what those of `LargeWrite` do.
protocol CommittingTask: DocumentTask {
  func makeRoom(in map: inout EntryMap) -> Bool
  func checkNext(in map: inout EntryMap, now: UInt64) -> LargeWriteStep
  func compute(_ limits: ServerLimits) -> LargeWriteStep
  /// Reserves what the changes need.
  func reserve(in map: inout EntryMap) throws(StorageError)
  func writeNext(to map: inout EntryMap, revision: UInt64, now: UInt64) throws(StorageError) -> LargeWriteStep
  func unblock()
  func didEnd(_ end: LargeWriteEnd)
}

extension CommittingTask {
  func compute(_ limits: ServerLimits) -> LargeWriteStep { .finished }
}

/// The large commit of a job, which pauses meanwhile.
///
/// Safe because the job's thread uses the task only before and after the commit.
final class TaskCommit: LargeWrite, @unchecked Sendable {
  private let task: any CommittingTask
  private let job: DocumentJob
  private let onEnd: @Sendable () -> Void

  var store: Store { job.store }

  /// - Parameter onEnd: Called when the task has the outcome.
  init(_ task: any CommittingTask, of job: DocumentJob, onEnd: @escaping @Sendable () -> Void) {
    (self.task, self.job, self.onEnd) = (task, job, onEnd)
  }

  func prepare() -> LargeWriteStep { job.mustEnd ? .stopped : .finished }

  func makeRoom(in map: inout EntryMap) -> Bool { task.makeRoom(in: &map) }

  func checkNext(in map: inout EntryMap, now: UInt64) -> LargeWriteStep { task.checkNext(in: &map, now: now) }

  func compute() -> LargeWriteStep { task.compute(job.limits) }

  func reserve(in map: inout EntryMap) throws(StorageError) -> LargeWriteStep {
    try task.reserve(in: &map)
    return job.beginCommit() ? .finished : .stopped
  }

  func writeNext(to map: inout EntryMap, revision: UInt64, now: UInt64) throws(StorageError) -> LargeWriteStep {
    try task.writeNext(to: &map, revision: revision, now: now)
  }

  func unblock() { task.unblock() }

  func didEnd(_ end: LargeWriteEnd) {
    task.didEnd(end)
    onEnd()
  }
}

/// A copy of the value that a large commit writes next, made without the store's lock because copying a large value takes
/// a while.
struct CopiedValue {
  private static let minByteCount = 128 << 10

  private var memory: ValueMemory?

  /// Whether a value must be copied before it is put.
  func mustCopy(_ value: RawSpan) -> Bool { value.byteCount >= Self.minByteCount && memory == nil }

  /// Copies a value. Without memory, the put of the value fails, too.
  mutating func copy(_ value: RawSpan) {
    memory = ValueMemory(byteCount: value.byteCount)
    if let memory { unsafe value.withUnsafeBytes { bytes in unsafe memory.room.copyMemory(from: bytes) } }
  }

  /// Puts a value, or its copy.
  mutating func put(
    _ key: RawSpan, _ value: RawSpan, kind: EntryKind = .single, expiry: UInt64, to map: inout EntryMap,
    revision: UInt64, now: UInt64
  ) throws(StorageError) {
    if let memory = memory.take() {
      let value = unsafe RawSpan(_unsafeBytes: memory.bytes(0..<memory.byteCount))
      try map.put(key, value, kind: kind, expiry: expiry, revision: revision, now: now, in: memory)
    } else {
      try map.put(key, value, kind: kind, expiry: expiry, revision: revision, now: now)
    }
  }
}

extension Store {
  /// The number of entries that are looked up under one acquisition of the lock.
  private static let lookUpsPerAccess = 256

  /// Takes a snapshot, and looks entries up in it, a few at a time.
  /// - Returns: Their handles, 0 for absent ones.
  /// - Throws: `storeDropped` or `snapshotEnded`.
  func handles(
    ofKeys keys: [[UInt8]], now: UInt64
  ) throws(StorageError) -> (handles: [UInt32], snapshot: Snapshot) {
    let snapshot = try accessInTurn { map throws(StorageError) in
      guard !map.isDropped else { throw map.removalError }
      return map.snapshot(now: now)
    }
    var handles: [UInt32] = []
    handles.reserveCapacity(keys.count)
    do throws(StorageError) {
      while handles.count < keys.count {
        let chunk = keys[handles.count..<min(keys.count, handles.count + Self.lookUpsPerAccess)]
        let found = try accessInTurn { map throws(StorageError) in
          var found: [UInt32] = []
          for key in chunk {
            let handle = unsafe try map.handle(of: key.span.bytes, in: snapshot)
            let expiry = handle == 0 ? 0 : map.entry(at: handle).expiry
            found.append(expiry != 0 && expiry <= now ? 0 : handle)
          }
          return found
        }
        handles += found
      }
    } catch {
      access { $0.end(snapshot) }
      throw error
    }
    return (handles, snapshot)
  }
}
