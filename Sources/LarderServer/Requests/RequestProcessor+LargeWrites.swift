import Glibc
import Platform
import Storage
import Wire

/// Writes that take too long for the store's lock: they become jobs, whose connections pause.
///
/// The request stays in the connection's input, where its memory is counted, and is executed again when its job has
/// ended: then it makes the reply.
extension RequestProcessor {
  /// The maximum number of entries, the size, and the number of keys in indexes of a write under the store's lock.
  private static let maxEntryCount = 1_024
  private static let maxByteCount = 1 << 20
  private static let maxIndexKeyCount = 2_048

  /// Whether a write takes so long that it is left to a job.
  mutating func isLarge(count: Int, _ body: RawSpan, of operation: Operation, _ map: inout EntryMap) -> Bool {
    if count > Self.maxEntryCount || body.byteCount > Self.maxByteCount { return count > 0 }
    let keyCount =
      operation == .deleteMany
      ? map.indexKeyCount(ofDeletes: count)
      : map.indexKeyCount(ofPuts: count) { Self.arrayElementCount(in: body) }
    return keyCount > Self.maxIndexKeyCount
  }

  /// Returns the number of commas in arrays, which is about that of their elements.
  private static func arrayElementCount(in body: RawSpan) -> Int {
    unsafe body.withUnsafeBytes { bytes in
      var (count, offset) = (0, 0)
      while let start = unsafe bytes[offset...].firstIndexOfByte(UInt8(ascii: "[")) {
        let end = unsafe bytes[start...].firstIndexOfByte(UInt8(ascii: "]")) ?? bytes.count
        for index in start..<end where unsafe bytes[index] == UInt8(ascii: ",") { count += 1 }
        offset = end
      }
      return count
    }
  }

  /// Leaves a write to a job, and pauses the connection until it has ended, or makes the reply of the job that has ended.
  /// - Throws: `commitPending` if the connection has paused.
  /// - Returns: nil if the write has updates.
  mutating func writeLarge(
    _ operation: Operation, _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store,
    into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult? {
    if let job = connection.endedWrite.take() {
      return try finish(job, id, into: &replies)
    }
    let request = PendingRequest(
      operation: operation.rawValue, byteCount: body.byteCount + Frame.headerSize, store: store.name.text,
      startTime: monotonicNanoseconds())
    let token = connection.nextPauseToken
    let job = try WriteJob(
      operation, body, in: connection.input.valueMemory, of: store, request, limits
    ) { [mailbox] in mailbox.post(endOf: token) }
    _ = connection.begin(.write(job))
    throw .commitPending
  }

  private mutating func finish(
    _ job: WriteJob, _ id: UInt32, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult? {
    var outcome = Outcome.done
    var shownRevision: UInt64 = 0
    switch job.outcome {
    case .number(let number, let revision):
      replies.bytes.appendReply(id: id, number: number)
      shownRevision = revision
    case .failure(let code, let reason, let revision):
      outcome = replies.fail(code, id, reason).outcome
      shownRevision = revision
    case .needsSpace: throw .diskTooSlow
    case .needsUpdates: return nil
    case nil: preconditionFailure("a job that has ended has an outcome")
    }
    record(outcome, of: job.request)
    return RequestResult(shownRevision: shownRevision, isPending: true)
  }
}

extension Slice<UnsafeRawBufferPointer> {
  /// Returns the index of the first byte with this value.
  fileprivate func firstIndexOfByte(_ byte: UInt8) -> Int? {
    guard let start = unsafe base.baseAddress, unsafe !isEmpty,
      let found = unsafe memchr(start + startIndex, Int32(byte), endIndex - startIndex)
    else { return nil }
    return unsafe UnsafeRawPointer(found) - start
  }
}
