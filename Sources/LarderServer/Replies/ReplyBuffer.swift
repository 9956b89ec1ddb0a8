import Storage
import Wire

/// The replies to one connection's requests that have not been sent yet, and the commits that must be durable before
/// they are.
///
/// Handlers append whole frames. Values that lie in files are left out at first (`lacksValues`): their room is filled
/// after the store has been unlocked, by `readCachedValues`, or else by a `ValueRead`. Large values in memory are
/// attached instead of copied: they belong between the bytes, and are sent from where they are. Owned by a worker: there
/// is one for each slot of its `ReadBatch`, and a spare one in its `EventLoop`.
struct ReplyBuffer: ~Copyable {
  var bytes = ByteBuffer()
  private(set) var requiredCommits: [RequiredCommit] = []
  private var missingValues: [MissingValue] = []
  private var attachedValues: [AttachedValue] = []
  private var attachedByteCount = 0

  /// The maximum size of an error's message, in bytes. A longer one is truncated.
  private static let maxMessageSize = 1_024

  @inline(__always)
  var isEmpty: Bool { bytes.isEmpty }

  /// The size of the replies, in bytes.
  @inline(__always)
  var count: Int { bytes.count &+ attachedByteCount }

  @inline(__always)
  var hasAttachedValues: Bool { attachedByteCount > 0 }

  /// Empties the buffer for another connection, and frees its storage if that is larger than `maxKeptBytes`.
  @inline(__always)
  mutating func reset(maxKeptBytes: Int) {
    bytes.removeAll()
    if hasAttachedValues { _ = takeAttachedValues() }
    clearRequiredCommits()
    if bytes.capacity > maxKeptBytes { bytes.releaseStorage() }
  }

  // MARK: Durability

  /// Requires that a commit is durable before the replies are sent, because one of them reveals or acknowledges it.
  @inline(__always)
  mutating func require(_ revision: UInt64, _ commitWriter: CommitWriter) {
    if !commitWriter.gatesReplies || commitWriter.isDurable(revision) { return }
    if let last = requiredCommits.indices.last, requiredCommits[last].include(revision, commitWriter, end: count) {
      return
    }
    requiredCommits.append(RequiredCommit(revision, commitWriter, end: count))
  }

  @inline(__always)
  mutating func clearRequiredCommits() {
    if !requiredCommits.isEmpty { requiredCommits.removeAll(keepingCapacity: true) }
  }

  // MARK: Entries

  /// Appends the record of an entry. Expiry is sent as the remaining time.
  @inline(__always)
  mutating func appendEntry(_ entry: EntryView, withKey: Bool, withValue: Bool = true, now: UInt64) {
    let nothing = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    let key = unsafe withKey ? entry.key : nothing
    guard let value = unsafe withValue ? entry.value : nothing else {
      return unsafe appendWithoutValue(entry, key: key, now: now)
    }
    unsafe bytes.appendEntry(
      kind: ValueKind(entry.kind), revision: entry.revision, expiry: entry.expiry == 0 ? 0 : entry.expiry &- now,
      key: key, value: value)
  }

  /// Appends the record of an entry with a part of its value.
  mutating func appendEntry(_ entry: EntryView, valueRange: Range<Int>, now: UInt64) {
    unsafe bytes.appendEntryHeader(
      kind: ValueKind(entry.kind), revision: entry.revision, expiry: entry.expiry == 0 ? 0 : entry.expiry &- now,
      key: UnsafeRawBufferPointer(start: nil, count: 0), valueSize: valueRange.count)
    if let value = unsafe entry.value {
      unsafe bytes.append(UnsafeRawBufferPointer(rebasing: value[valueRange]))
    } else if !valueRange.isEmpty, let value = entry.separatedValue {
      missingValues.append(
        MissingValue(
          value: value.part(valueRange), offset: bytes.extend(by: valueRange.count), key: unsafe ArraySlice(entry.key)))
    }
  }

  /// Appends the record of an entry whose value is in a file, with room for the value.
  private mutating func appendWithoutValue(_ entry: EntryView, key: UnsafeRawBufferPointer, now: UInt64) {
    guard let value = entry.separatedValue else { preconditionFailure("a value is in memory or in a file") }
    unsafe bytes.appendEntryHeader(
      kind: ValueKind(entry.kind), revision: entry.revision, expiry: entry.expiry == 0 ? 0 : entry.expiry &- now,
      key: key, valueSize: entry.valueByteCount)
    missingValues.append(
      MissingValue(value: value, offset: bytes.extend(by: entry.valueByteCount), key: unsafe ArraySlice(entry.key)))
  }

  /// Appends a reply with an entry, whose key is not in it. A large value in memory is attached.
  @inline(__always)
  mutating func appendReply(_ id: UInt32, _ entry: EntryView, now: UInt64) {
    let start = bytes.beginReply(id: id)
    if entry.valueByteCount >= AttachedValue.minSize, let value = entry.largeValue {
      attach(value, of: entry, toFrameAt: start, now: now)
    } else {
      appendEntry(entry, withKey: false, now: now)
      bytes.endFrame(start)
    }
  }

  private mutating func attach(_ value: LargeValue, of entry: EntryView, toFrameAt start: Int, now: UInt64) {
    unsafe bytes.appendEntryHeader(
      kind: ValueKind(entry.kind), revision: entry.revision, expiry: entry.expiry == 0 ? 0 : entry.expiry &- now,
      key: UnsafeRawBufferPointer(start: nil, count: 0), valueSize: value.byteCount)
    bytes.endFrame(start, followedBy: value.byteCount)
    attachedValues.append(AttachedValue(value: value, offset: bytes.count))
    attachedByteCount += value.byteCount
  }

  /// Removes and returns the attached values.
  mutating func takeAttachedValues() -> [AttachedValue] {
    defer { attachedValues = [] }
    attachedByteCount = 0
    return attachedValues
  }

  /// Copies the attached values to where they belong.
  mutating func copyAttachedValues() {
    guard hasAttachedValues else { return }
    var whole = ByteBuffer()
    whole.reserve(count)
    var position = 0
    for attached in takeAttachedValues() {
      bytes.withSpan { whole.append($0.extracting(position..<attached.offset)) }
      unsafe whole.append(attached.value.bytes)
      position = attached.offset
    }
    bytes.withSpan { whole.append($0.extracting(position..<$0.byteCount)) }
    swap(&bytes, &whole)
  }

  /// Whether the last frame has room for values that must be read.
  @inline(__always)
  var lacksValues: Bool { !missingValues.isEmpty }

  enum CachedValues {
    /// All values were read.
    case complete
    /// One of them is damaged. An error has replaced the frame.
    case failed(RequestResult)
    /// The frame, which was removed, has values that only the disk has.
    case onDisk(IncompleteFrame)
  }

  /// Reads the values that the last frame lacks, as long as that takes no disk. Call it without the store's lock.
  /// - Parameter mark: where the frame begins.
  mutating func readCachedValues(of id: UInt32, from mark: Int) -> CachedValues {
    for missing in missingValues {
      do throws(SeparatedValueError) {
        let isRead = unsafe try bytes.overwrite(at: missing.offset, byteCount: missing.value.byteCount) {
          (room) throws(SeparatedValueError) in unsafe try missing.value.readFromCache(into: room)
        }
        guard isRead else { return .onDisk(takeIncompleteFrame(from: mark)) }
      } catch {
        truncate(to: mark)
        return .failed(fail(.valueDamaged, id, missing.message(error)))
      }
    }
    missingValues.removeAll(keepingCapacity: true)
    return .complete
  }

  private mutating func takeIncompleteFrame(from mark: Int) -> IncompleteFrame {
    let values = missingValues
    let frame = bytes.withSpan { bytes in
      IncompleteFrame(bytes.extracting(mark..<bytes.byteCount), at: mark, lacking: values)
    }
    truncate(to: mark)
    return frame
  }

  /// Appends a frame that was completed elsewhere, which empties its buffer.
  mutating func append(_ frame: inout ByteBuffer) {
    if bytes.isEmpty { swap(&bytes, &frame) } else { frame.withSpan { bytes.append($0) } }
    frame.releaseStorage()
  }

  /// Removes the frames after `mark`.
  mutating func truncate(to mark: Int) {
    bytes.truncate(to: mark)
    missingValues.removeAll()
  }

  /// Marks a frame as followed by more of the same reply.
  mutating func markMore(frameAt start: Int) {
    bytes.replace(at: start + 5, with: Frame.more)
  }

  // MARK: Errors

  /// Appends an error. A long message is truncated: some repeat what the client sent, which may be as long as a frame,
  /// and three times as long once it is UTF-8.
  mutating func appendError(_ code: ErrorCode, _ id: UInt32, _ message: String = "") {
    let isShort = message.utf8.count <= Self.maxMessageSize
    bytes.appendError(
      code, id: id, message: isShort ? message : String(message.prefix(Self.maxMessageSize / 4)) + " …")
  }

  mutating func appendError(_ error: StorageError, _ id: UInt32) { appendError(ErrorCode(error), id, "\(error)") }

  /// Appends an error as the reply to a request.
  /// - Returns: the request's result.
  mutating func fail(_ code: ErrorCode, _ id: UInt32, _ message: String = "") -> RequestResult {
    appendError(code, id, message)
    return RequestResult(outcome: code.outcome)
  }

  mutating func fail(_ error: StorageError, _ id: UInt32) -> RequestResult {
    fail(ErrorCode(error), id, "\(error)")
  }
}
