import Platform
import Storage
import Synchronization
import Wire

/// A put-many, delete-many or apply without updates that takes too long for one acquisition of the store's lock, so
/// that it becomes a large commit. Its connection pauses meanwhile.
///
/// Made by a worker. Safe because the thread of `LargeCommits` alone uses everything that changes until it posts the end
/// of the pause to the worker, and the worker alone uses it after that; `phase` is atomic.
final class WriteJob: @unchecked Sendable {
  /// How the job has ended, which the reply reports.
  enum Ending {
    case number(UInt64, shownRevision: UInt64)
    case failure(ErrorCode, String, shownRevision: UInt64)
    /// The store has no room for the commit at the moment.
    case needsSpace
    /// The operations have updates, which another kind of job makes.
    case needsUpdates
  }

  private enum Phase: UInt8, AtomicRepresentable { case running, canceled, committing }

  let store: Store
  let request: PendingRequest
  /// Nil until the job has ended.
  private(set) var ending: Ending?
  private let operation: Operation
  private let memory: ValueMemory
  /// Where the body of the request is in the memory.
  private let range: Range<Int>
  private let limits: ServerLimits
  private let onEnd: @Sendable () -> Void
  private let phase = Atomic(Phase.running)

  /// The size of the puts and deletes.
  private var size = WriteSize()
  private var hasConditions = false
  /// The number and the offset of the next operation to check, and then to write.
  private var (index, offset) = (0, 4)
  private var copiedValue = CopiedValue()
  /// The newest commit that checks reveal if they hold.
  private var checkedRevision: UInt64 = 0
  private var deletedCount: UInt64 = 0
  /// The store's revision before the write.
  private var previousRevision: UInt64 = 0

  /// - Parameters:
  ///   - memory: The memory that the body is in; nil if it has to be copied.
  ///   - onEnd: Called once the job has ended.
  /// - Throws: `outOfMemory`.
  init(
    _ operation: Operation, _ body: RawSpan, in memory: ValueMemory?, of store: Store, _ request: PendingRequest,
    _ limits: ServerLimits, onEnd: @escaping @Sendable () -> Void
  ) throws(StorageError) {
    let shared = memory.flatMap { memory in
      unsafe body.withUnsafeBytes { bytes in unsafe memory.offset(of: bytes).map { (memory, $0) } }
    }
    if let (memory, offset) = shared {
      self.memory = memory
      range = offset..<offset + body.byteCount
    } else {
      guard let copy = ValueMemory(byteCount: max(1, body.byteCount)) else { throw .outOfMemory }
      unsafe body.withUnsafeBytes { bytes in unsafe copy.room.copyMemory(from: bytes) }
      self.memory = copy
      range = 0..<body.byteCount
    }
    (self.operation, self.store, self.request, self.limits, self.onEnd) = (operation, store, request, limits, onEnd)
  }

  /// Cancels the job, unless it is about to write. From any thread.
  /// - Returns: Whether nothing is written.
  @discardableResult
  func cancel() -> Bool {
    let (_, phase) = phase.compareExchange(expected: .running, desired: .canceled, ordering: .acquiringAndReleasing)
    return phase != .committing
  }

  /// The body of the request, which stays in place as long as the job.
  @unsafe
  var bytes: UnsafeRawBufferPointer { unsafe memory.bytes(range) }

  private func fail(_ code: ErrorCode, _ reason: String, showing revision: UInt64 = 0) -> LargeWriteStep {
    ending = .failure(code, reason, shownRevision: revision)
    return .stopped
  }
}

extension WriteJob: LargeWrite {
  func prepare() -> LargeWriteStep {
    let body = unsafe RawSpan(_unsafeBytes: bytes)
    switch operation {
    case .putMany: return preparePuts(body)
    case .deleteMany: return prepareDeletes(body)
    default: return prepareOperations(body)
    }
  }

  private func preparePuts(_ body: RawSpan) -> LargeWriteStep {
    let count = Int(body.integer(at: 0, as: UInt32.self) ?? 0)
    for number in 0..<count {
      guard let write = WriteRecord(body, at: offset) else {
        return fail(.malformed, BodyFlaw.ofWrite(body, at: offset))
      }
      if let code = write.error(in: body, maxValueSize: limits.maxValueBytes) {
        let flaw = write.flaw(code, in: body, maxValueSize: limits.maxValueBytes)
        return fail(code, write.message(flaw, number, in: body))
      }
      if write.hasCondition { hasConditions = true }
      size.add(byteCount: write.key.count + write.value.count, isPut: true)
      offset = write.end
    }
    guard offset == body.byteCount else { return fail(.malformed, BodyFlaw.trailing(body.byteCount - offset)) }
    offset = 4
    return .finished
  }

  private func prepareDeletes(_ body: RawSpan) -> LargeWriteStep {
    if let (code, reason) = KeyList.flaw(in: body, limits) { return fail(code, reason) }
    guard var keys = KeyList(body) else { return fail(.malformed, BodyFlaw.ofKeyList(body)) }
    while let key = keys.next(body) { size.add(byteCount: key.count, isPut: false) }
    return .finished
  }

  private func prepareOperations(_ body: RawSpan) -> LargeWriteStep {
    let count = Int(body.integer(at: 0, as: UInt32.self) ?? 0)
    var hasUpdates = false
    for number in 0..<count {
      guard let record = ApplyRecord(body, at: offset) else {
        return fail(.malformed, BodyFlaw.ofApply(body, at: offset))
      }
      if let (code, reason) = record.error(in: body, maxValueSize: limits.maxValueBytes) {
        return fail(code, record.message(reason, number, in: body))
      }
      if record.hasCondition { hasConditions = true }
      switch record.kind {
      case .putSingle, .putList, .delete:
        size.add(byteCount: record.key.count + record.value.count, isPut: record.kind != .delete)
      case .update: hasUpdates = true
      case .check: break
      }
      offset = record.end
    }
    guard offset == body.byteCount else { return fail(.malformed, BodyFlaw.trailing(body.byteCount - offset)) }
    offset = 4
    guard hasUpdates else { return .finished }
    ending = .needsUpdates
    return .stopped
  }

  func makeRoom(in map: inout EntryMap) -> Bool { size.makeRoom(in: &map) }

  func checkNext(in map: inout EntryMap, now: UInt64) -> LargeWriteStep {
    guard hasConditions else { return .finished }
    let body = unsafe RawSpan(_unsafeBytes: bytes)
    guard offset < body.byteCount else {
      (index, offset) = (0, 4)
      return .finished
    }
    switch operation {
    case .putMany:
      guard let write = WriteRecord(body, at: offset) else { return .stopped }
      let (condition, key) = (EntryCondition(write), body.extracting(write.key))
      if write.hasCondition, !map.satisfies(condition, key, now: now) {
        let reason = condition.failure(actual: map.get(key, now: now)?.revision)
        return fail(.conditionFailed, write.message(reason, index, in: body), showing: map.revisions.last)
      }
      offset = write.end
    default:
      guard let record = ApplyRecord(body, at: offset) else { return .stopped }
      let (condition, key) = (EntryCondition(record), body.extracting(record.key))
      if record.hasCondition, !map.satisfies(condition, key, now: now) {
        let revision = map.get(key, now: now)?.revision
        return fail(
          .conditionFailed, record.conditionMessage(index, actual: revision, in: body), showing: map.revisions.last)
      }
      if record.kind == .check {
        let isRevision = record.flags & RecordFlags.ifRevision != 0
        checkedRevision = max(checkedRevision, isRevision ? record.revision : map.revisions.lastRemoval)
      }
      offset = record.end
    }
    index += 1
    return .unfinished
  }

  func reserve(in map: inout EntryMap) throws(StorageError) -> LargeWriteStep {
    previousRevision = map.revisions.last
    if size.isEmpty {
      ending = .number(0, shownRevision: checkedRevision)
      return .stopped
    }
    try size.reserve(in: &map)
    let (_, phase) = phase.compareExchange(expected: .running, desired: .committing, ordering: .acquiringAndReleasing)
    guard phase == .running else { return .stopped }
    map.reserveLargeCommit(operations: size.operationCount, bytes: size.byteCount)
    return .finished
  }

  func writeNext(to map: inout EntryMap, revision: UInt64, now: UInt64) throws(StorageError) -> LargeWriteStep {
    let body = unsafe RawSpan(_unsafeBytes: bytes)
    switch operation {
    case .putMany:
      guard let write = WriteRecord(body, at: offset) else { return .finished }
      if copiedValue.mustCopy(body.extracting(write.value)) { return .blocked }
      try copiedValue.put(
        body.extracting(write.key), body.extracting(write.value), kind: EntryKind(write.kind),
        expiry: write.expiry == 0 ? 0 : now + write.expiry, to: &map, revision: revision, now: now)
      offset = write.end
    case .deleteMany:
      guard let size = body.integer(at: offset, as: UInt16.self) else { return .finished }
      let end = offset + 2 + Int(size)
      if try map.delete(body.extracting(offset + 2..<end), revision: revision, now: now) { deletedCount += 1 }
      offset = end
    default:
      guard let record = ApplyRecord(body, at: offset) else { return .finished }
      let key = body.extracting(record.key)
      if let kind = record.valueKind {
        if copiedValue.mustCopy(body.extracting(record.value)) { return .blocked }
        try copiedValue.put(
          key, body.extracting(record.value), kind: EntryKind(kind),
          expiry: record.expiry == 0 ? 0 : now + record.expiry, to: &map, revision: revision, now: now)
      } else if record.kind == .delete {
        _ = try map.delete(key, revision: revision, now: now)
      }
      offset = record.end
    }
    return offset < body.byteCount ? .unfinished : .finished
  }

  func unblock() {
    let body = unsafe RawSpan(_unsafeBytes: bytes)
    let value = operation == .putMany ? WriteRecord(body, at: offset)?.value : ApplyRecord(body, at: offset)?.value
    if let value { copiedValue.copy(body.extracting(value)) }
  }

  func didEnd(_ end: LargeWriteEnd) {
    switch end {
    case .stopped: break
    case .refused(.diskTooSlow): ending = .needsSpace
    case .refused(let error):
      ending = .failure(
        ErrorCode(error), "\(error)", shownRevision: error.revealsContents ? previousRevision : 0)
    case .written(let revision):
      let number =
        switch operation {
        case .deleteMany: deletedCount
        default: revision > previousRevision ? revision : 0
        }
      ending = .number(number, shownRevision: revision)
    case .failed(let error):
      // The client must not take it for "not executed".
      ending = .failure(.failed, "\(error)", shownRevision: previousRevision)
    }
    onEnd()
  }
}
