import Platform
import Storage
import Synchronization

/// The size of the buffers of one worker's connections, checked against the worker's share of the server's limits.
///
/// Each worker closes its own connections, because it can't close others'. Owned by the worker's `ConnectionHandler`.
struct BufferAccounting {
  private let totals: BufferTotals
  /// The storage of all connections' input.
  private var inputBytes = 0
  /// The contents of all outboxes.
  private var outboxBytes = 0

  init(_ totals: BufferTotals) { self.totals = totals }

  var hasTooMuchInput: Bool { inputBytes > totals.inputShare }
  var hasTooMuchOutput: Bool { outboxBytes > totals.outputShare }

  /// Records that a connection's outbox has grown; shrunk if `byteCount` is negative.
  mutating func outboxDidChange(_ connection: inout Connection, by byteCount: Int) {
    connection.figures.waitingBytes.store(UInt64(connection.outbox.count), ordering: .relaxed)
    outboxBytes += byteCount
    let valueBytes = connection.outbox.valueByteCount - connection.accountedValueBytes
    connection.accountedValueBytes += valueBytes
    totals.addOutput(byteCount, ofValues: valueBytes)
  }

  /// Records the present storage of a connection's input.
  @inline(__always)
  mutating func inputMayHaveChanged(_ connection: inout Connection) {
    let byteCount = connection.input.storageByteCount
    if byteCount != connection.accountedInputBytes { inputDidChange(&connection, to: byteCount) }
  }

  private mutating func inputDidChange(_ connection: inout Connection, to byteCount: Int) {
    inputBytes += byteCount - connection.accountedInputBytes
    totals.addInput(byteCount - connection.accountedInputBytes)
    connection.accountedInputBytes = byteCount
  }

  /// Removes the buffers of a connection that is closed.
  mutating func remove(_ connection: borrowing Connection) {
    outboxBytes -= connection.outbox.count
    totals.addOutput(-connection.outbox.count, ofValues: -connection.accountedValueBytes)
    inputBytes -= connection.accountedInputBytes
    totals.addInput(-connection.accountedInputBytes)
  }
}

/// The size of all connections' buffers, for the metrics, and each worker's share of the limits. Used by any thread.
final class BufferTotals: Sendable {
  /// The maximum number of bytes that may wait to be sent at one worker. All workers have the same share, so that
  /// clients that stall one worker cost no client of another its connection. It is large enough for the largest reply.
  fileprivate let outputShare: Int
  /// The maximum number of bytes of incomplete requests at one worker. It is large enough for the largest request.
  fileprivate let inputShare: Int
  /// The maximum number of bytes of all uploads.
  private let maxUploadBytes: Int
  private let input = Atomic<Int>(0)
  private let uploads = Atomic<Int>(0)
  private let output = Atomic<Int>(0)
  /// How much of the output are large values.
  private let outputValues = Atomic<Int>(0)

  /// What the process may take from the system.
  private let memory: MemoryBudget

  init(limits: ServerLimits, workerCount: Int, memory: MemoryBudget) {
    self.memory = memory
    outputShare = max(limits.maxTotalOutputBytes / workerCount, limits.maxOutputBytes + limits.maxFrameBytes)
    // A buffer that grows takes up to twice its contents.
    inputShare = max(limits.maxTotalInputBytes / workerCount, 2 * limits.maxFrameBytes)
    maxUploadBytes = max(limits.maxTotalInputBytes, 2 * limits.maxFrameBytes)
  }

  var inboxBytes: UInt64 { UInt64(max(0, input.load(ordering: .relaxed))) }
  var outboxBytes: UInt64 { UInt64(max(0, output.load(ordering: .relaxed))) }

  /// The memory of all buffers, in bytes. Large values in outboxes are a part of it when no store has them any more.
  var memoryBytes: Int {
    max(0, input.load(ordering: .relaxed) + output.load(ordering: .relaxed) - outputValues.load(ordering: .relaxed))
      + ValueMemory.releasedByteCount
  }

  /// Whether there is room for so many more bytes of uploads.
  func mayUpload(_ byteCount: Int) -> Bool { uploads.load(ordering: .relaxed) + byteCount <= maxUploadBytes }

  /// Records that the storage of an upload has grown; shrunk if `byteCount` is negative. It counts as input.
  func uploadDidChange(by byteCount: Int) {
    uploads.add(byteCount, ordering: .relaxed)
    addInput(byteCount)
  }

  fileprivate func addInput(_ byteCount: Int) {
    input.add(byteCount, ordering: .relaxed)
    memory.count(byteCount)
  }

  fileprivate func addOutput(_ byteCount: Int, ofValues valueBytes: Int) {
    output.add(byteCount, ordering: .relaxed)
    if valueBytes != 0 { outputValues.add(valueBytes, ordering: .relaxed) }
    // Values take no memory beside that of their stores.
    memory.count(byteCount - valueBytes)
  }
}
