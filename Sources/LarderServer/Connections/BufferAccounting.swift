import Platform
import Storage
import Synchronization

/// The size of the outboxes of one worker's connections, checked against the worker's share of the server's limit.
///
/// Each worker closes its own connections, because it can't close others'. Owned by the worker's `EventLoop`.
struct BufferAccounting {
  private let totals: BufferTotals
  /// The contents of all outboxes.
  private var outboxBytes = 0

  init(_ totals: BufferTotals) { self.totals = totals }

  var hasTooMuchOutput: Bool { outboxBytes > totals.outputShare }

  /// Whether requests of clients that don't read their replies have to wait.
  var hasMuchOutput: Bool { outboxBytes > totals.outputShare / 2 }

  /// Records that a connection's outbox has grown; shrunk if `byteCount` is negative.
  mutating func outboxDidChange(_ connection: inout Connection, by byteCount: Int) {
    connection.figures.waitingBytes.store(UInt64(connection.outbox.count), ordering: .relaxed)
    outboxBytes += byteCount
    let valueBytes = connection.outbox.valueByteCount - connection.accountedValueBytes
    connection.accountedValueBytes += valueBytes
    totals.addOutput(byteCount, ofValues: valueBytes)
  }

  /// Removes the outbox of a connection that is closed.
  mutating func remove(_ connection: borrowing Connection) {
    outboxBytes -= connection.outbox.count
    totals.addOutput(-connection.outbox.count, ofValues: -connection.accountedValueBytes)
  }
}

/// The size of all connections' buffers, for the metrics, and each worker's share of the limits. Used by any thread.
final class BufferTotals: Sendable {
  /// The maximum number of bytes that may wait to be sent at one worker. All workers have the same share, so that
  /// clients that stall one worker cost no client of another its connection. It is large enough for the largest reply.
  fileprivate let outputShare: Int
  /// The maximum sizes, in bytes, of all connections' input: of the small amounts that are only counted, and of the
  /// shares.
  private let maxCountedInput: Int
  let maxSharedInput: Int
  /// The maximum size of all uploads, in bytes.
  let maxUploadBytes: Int
  /// The memory for input beyond what is only counted. New frames come before those that have stood still.
  let inputs = FairShares(replacesEqual: true)
  /// The memory for uploads.
  let uploads = FairShares()
  private let countedInput = Atomic<Int>(0)
  private let input = Atomic<Int>(0)
  private let output = Atomic<Int>(0)
  /// How much of the output are large values.
  private let outputValues = Atomic<Int>(0)

  /// What the process may take from the system.
  private let memory: MemoryBudget

  init(limits: ServerLimits, workerCount: Int, memory: MemoryBudget) {
    self.memory = memory
    outputShare = max(limits.maxTotalOutputBytes / workerCount, limits.maxOutputBytes + limits.maxFrameBytes)
    // A buffer that grows takes up to twice its contents, and its new memory beside the old one.
    let maxInputBytes = max(limits.maxTotalInputBytes, 4 * limits.maxFrameBytes)
    maxCountedInput = maxInputBytes / 4
    maxSharedInput = maxInputBytes - maxCountedInput
    maxUploadBytes = maxInputBytes
  }

  var inboxBytes: UInt64 { UInt64(max(0, input.load(ordering: .relaxed))) }
  var outboxBytes: UInt64 { UInt64(max(0, output.load(ordering: .relaxed))) }

  /// The memory of all buffers, in bytes. Large values in outboxes are a part of it when no store has them any more.
  var memoryBytes: Int {
    max(0, input.load(ordering: .relaxed) + output.load(ordering: .relaxed) - outputValues.load(ordering: .relaxed))
      + ValueMemory.releasedByteCount
  }

  /// Takes memory that is only counted.
  /// - Returns: false if there is too much of that.
  func countInput(_ byteCount: Int) -> Bool {
    if countedInput.add(byteCount, ordering: .relaxed).newValue <= maxCountedInput { return true }
    releaseCountedInput(byteCount)
    return false
  }

  func releaseCountedInput(_ byteCount: Int) { countedInput.subtract(byteCount, ordering: .relaxed) }

  /// Records that connections' input and uploads have taken more memory; less if `byteCount` is negative.
  func addInput(_ byteCount: Int) {
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
