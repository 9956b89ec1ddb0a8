import Platform
import Storage
import Wire

/// The replies to one connection's requests that have not been sent yet, and the commits that must be durable before
/// they are.
///
/// Codecs append whole replies. Values that lie in files are left out at first (`lacksValues`): their room is filled
/// after the store has been unlocked, by `readCachedValues`, or else by a `ValueRead`. Large values in memory are
/// attached instead of copied: they belong between the bytes, and are sent from where they are. Owned by a worker: there
/// is one for each slot of its `ReadBatch`, and a spare one in its `EventLoop`.
struct ReplyBuffer: ~Copyable {
  var bytes = ByteBuffer()
  /// The replies that must wait, and all parts of streams, in order.
  private(set) var gates: [ReplyGate] = []
  /// Whether a reply must wait.
  private(set) var hasGates = false
  private var missingValues: [MissingValue] = []
  private var attachedValues: [AttachedValue] = []
  private var attachedByteCount = 0
  /// What the server must hold when it sends the replies: rarely more than one lease.
  private var lease: Lease?
  /// That of `lease`, which is compared for each request, without counting references.
  private(set) var leaseIdentity: ObjectIdentifier?
  private var otherLeases: [Lease] = []

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
    removeGates()
    removeLeases()
    if bytes.capacity > maxKeptBytes { bytes.releaseStorage() }
  }

  // MARK: Leases

  /// Whether the server must hold a lease when it sends the replies.
  @inline(__always)
  var requiresLease: Bool { leaseIdentity != nil }

  /// Requires that the server holds a lease when it sends the replies, because they show what is in a store.
  mutating func require(_ lease: Lease) {
    if leaseIdentity == nil {
      (self.lease, leaseIdentity) = (lease, ObjectIdentifier(lease))
    } else if leaseIdentity != ObjectIdentifier(lease), !otherLeases.contains(where: { $0 === lease }) {
      otherLeases.append(lease)
    }
  }

  /// Returns whether the server holds all leases that the replies require, and forgets these.
  /// - Parameter now: A time after all requests were executed, in milliseconds of the clock of `monotonicMilliseconds`.
  @inline(__always)
  mutating func checkLeases(at now: @autoclosure () -> UInt64) -> Bool { leaseIdentity == nil || takeLeases(at: now()) }

  private mutating func takeLeases(at now: UInt64) -> Bool {
    leaseIdentity = nil
    guard let lease = lease.take() else { return true }
    let isHeld = lease.isHeld(at: now)
    if otherLeases.isEmpty { return isHeld }
    defer { otherLeases.removeAll(keepingCapacity: true) }
    return isHeld && otherLeases.allSatisfy { $0.isHeld(at: now) }
  }

  @inline(__always)
  private mutating func removeLeases() {
    if leaseIdentity == nil { return }
    (lease, leaseIdentity) = (nil, nil)
    if !otherLeases.isEmpty { otherLeases.removeAll(keepingCapacity: true) }
  }

  // MARK: Durability

  /// Requires that a commit is durable before the last reply, and whatever follows it, is sent.
  /// - Parameters:
  ///   - tag: That of the request.
  ///   - start: Where the reply begins, as `count` was then.
  ///   - reveals: Whether the reply reveals or acknowledges the commit, so that it becomes an error if the commit is never
  ///     durable.
  @inline(__always)
  mutating func require(
    _ revision: UInt64, _ commitWriter: CommitWriter, of tag: UInt32, from start: Int, reveals: Bool
  ) {
    if !commitWriter.gatesReplies || commitWriter.isDurable(revision) { return }
    gates.append(
      ReplyGate(
        RequiredCommit(revision, commitWriter), tag: tag, range: start..<count, reveals: reveals,
        isContinuation: false))
    hasGates = true
  }

  /// Requires that a commit is durable before a part of a stream, which was appended last, is sent. The part is not sent if
  /// an earlier one of the stream becomes an error.
  mutating func requireForPart(_ revision: UInt64, _ commitWriter: CommitWriter, of tag: UInt32, from start: Int) {
    guard commitWriter.gatesReplies else { return }
    let commit = commitWriter.isDurable(revision) ? nil : RequiredCommit(revision, commitWriter)
    gates.append(
      ReplyGate(commit, tag: tag, range: start..<count, reveals: commit != nil, isContinuation: true))
    if commit != nil { hasGates = true }
  }

  /// The commit that the last reply requires; 0 if it requires none.
  var lastRequiredRevision: UInt64 {
    guard let last = gates.last, last.range.upperBound == count, let commit = last.commit else { return 0 }
    return commit.revision
  }

  @inline(__always)
  mutating func removeGates() {
    if gates.isEmpty { return }
    gates.removeAll(keepingCapacity: true)
    hasGates = false
  }

  // MARK: Values

  /// Attaches a large value: it belongs at the end of what has been appended.
  mutating func attach(_ value: LargeValue) {
    attachedValues.append(AttachedValue(value: value, offset: bytes.count))
    attachedByteCount += value.byteCount
  }

  /// Leaves room for a value that is in a file.
  /// - Parameters:
  ///   - key: That of its entry, for messages.
  ///   - isLine: Whether it is JSON that must become a line.
  mutating func leaveRoom(for value: SeparatedValue, key: UnsafeRawBufferPointer, asLine isLine: Bool = false) {
    missingValues.append(
      MissingValue(
        value: value, offset: bytes.extend(by: value.byteCount), key: unsafe ArraySlice(key), isLine: isLine))
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

  /// Whether the last reply has room for values that must be read.
  @inline(__always)
  var lacksValues: Bool { !missingValues.isEmpty }

  enum CachedValues {
    /// All values were read.
    case complete
    /// One of them is damaged. The reply, which was removed, must be this failure.
    case failed(CommandFailure)
    /// The reply, which was removed, has values that only the disk has.
    case onDisk(IncompleteReply)
  }

  /// Reads the values that the last reply lacks, as long as that takes no disk. Call it without the store's lock.
  /// - Parameter mark: Where the reply begins in the bytes.
  mutating func readCachedValues(from mark: Int) -> CachedValues {
    for missing in missingValues {
      do throws(SeparatedValueError) {
        let isRead = unsafe try bytes.overwrite(at: missing.offset, byteCount: missing.value.byteCount) {
          (room) throws(SeparatedValueError) in
          let isRead = unsafe try missing.value.readFromCache(into: room)
          if isRead, missing.isLine { unsafe room.makeLine() }
          return isRead
        }
        guard isRead else { return .onDisk(takeIncompleteReply(from: mark)) }
      } catch {
        truncate(to: mark)
        return .failed(missing.failure(error))
      }
    }
    missingValues.removeAll(keepingCapacity: true)
    return .complete
  }

  private mutating func takeIncompleteReply(from mark: Int) -> IncompleteReply {
    let values = missingValues
    let reply = bytes.withSpan { bytes in
      IncompleteReply(bytes.extracting(mark..<bytes.byteCount), at: mark, lacking: values)
    }
    truncate(to: mark)
    return reply
  }

  /// Appends a reply that was completed elsewhere, which empties its buffer.
  mutating func append(_ reply: inout ByteBuffer) {
    if bytes.isEmpty { swap(&bytes, &reply) } else { reply.withSpan { bytes.append($0) } }
    reply.releaseStorage()
  }

  /// Removes the end of the last reply, or all of it. It has no attached value.
  /// - Parameter mark: Where it begins in the bytes.
  mutating func truncate(to mark: Int) {
    bytes.truncate(to: mark)
    missingValues.removeAll { $0.offset >= mark }
    while let last = gates.last, last.range.upperBound > count { gates.removeLast() }
    hasGates = gates.contains { $0.commit != nil }
  }
}

/// A reply, or a part of one, that may have to wait, or not be sent as it is.
struct ReplyGate {
  /// The commit that must be durable first; nil for a part of a stream that need not wait itself.
  let commit: RequiredCommit?
  /// That of the request.
  let tag: UInt32
  /// Where it is among the replies, in bytes, with attached values.
  let range: Range<Int>
  /// Whether it reveals or acknowledges the commit.
  let reveals: Bool
  /// Whether it is a part of a stream other than the first.
  let isContinuation: Bool

  fileprivate init(
    _ commit: RequiredCommit?, tag: UInt32, range: Range<Int>, reveals: Bool, isContinuation: Bool
  ) {
    (self.commit, self.tag, self.range) = (commit, tag, range)
    (self.reveals, self.isContinuation) = (reveals, isContinuation)
  }

  /// The same reply behind `offset` more bytes.
  func moved(by offset: Int) -> ReplyGate {
    ReplyGate(
      commit, tag: tag, range: range.lowerBound + offset..<range.upperBound + offset, reveals: reveals,
      isContinuation: isContinuation)
  }
}

/// A commit that must be durable before a reply is sent.
struct RequiredCommit {
  let revision: UInt64
  private let commitWriter: CommitWriter

  init(_ revision: UInt64, _ commitWriter: CommitWriter) {
    self.commitWriter = commitWriter
    self.revision = revision
  }

  /// Whether the reply need not wait any more: the commit is durable, or it never will be.
  var isSettled: Bool { commitWriter.isDurable(revision) || commitWriter.failure != nil }

  /// Why the commit will never be durable; nil if it is.
  var failure: StorageError? { commitWriter.isDurable(revision) ? nil : commitWriter.failure }

  /// Asks to be notified when the commit is settled.
  /// - Returns: False if it is settled already.
  func wait(notifying waiter: any DurabilityWaiter) -> Bool { commitWriter.wait(for: revision, waiter) }
}
