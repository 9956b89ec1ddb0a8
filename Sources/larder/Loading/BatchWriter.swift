import Larder

/// Writes entries to a store in batches, several of them concurrently, in constant memory.
///
/// Concurrent batches can overtake each other. Therefore every key belongs to a partition, and a partition sends one
/// batch at a time: if a key is written twice, the later write wins. Owned by the one task that loads or restores.
struct BatchWriter: ~Copyable {
  /// A batch fits into the smallest frame limit that a server can be configured with.
  private static let maxBatchBytes = 60_000
  /// The maximum overhead of the wire format for a key and a value.
  private static let overheadBytes = 24
  private static let partitionCount = 4

  private struct Partition {
    var writes: [Write] = []
    var byteCount = 0
    var numbers: ClosedRange<Int>?
    var pendingBatch: PendingBatch?
  }

  /// A batch that was sent and may not have been acknowledged yet.
  private struct PendingBatch {
    let count: Int
    let numbers: ClosedRange<Int>
    let result: Task<LarderError?, Never>

    /// The error, if the batch failed. Cancelling the waiting task cancels the batch.
    var error: LarderError? {
      get async {
        await withTaskCancellationHandler {
          await result.value
        } onCancel: {
          result.cancel()
        }
      }
    }
  }

  /// What the numbers of writes count, for error messages.
  enum ItemNoun {
    case line, entry
    /// Writes that have no numbers.
    case copy
  }

  private let store: RemoteStore
  private let itemNoun: ItemNoun
  private var partitions = [Partition](repeating: Partition(), count: partitionCount)
  /// The number of writes that the server has acknowledged.
  private(set) var acknowledgedCount = 0
  /// The lowest number of a write in a batch that failed.
  private var firstFailedNumber = Int.max

  init(_ store: RemoteStore, itemNoun: ItemNoun) {
    self.store = store
    self.itemNoun = itemNoun
  }

  /// Returns the partition of a key.
  static func partition(of key: String) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in key.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return Int((hash ^ hash >> 15) % UInt32(partitionCount))
  }

  /// Returns whether the partition must be sent before a write of this size can be added.
  func isFull(_ partition: Int, for byteCount: Int) -> Bool {
    !partitions[partition].writes.isEmpty
      && partitions[partition].byteCount + byteCount + Self.overheadBytes > Self.maxBatchBytes
  }

  mutating func add(_ write: Write, byteCount: Int, number: Int, to partition: Int) {
    ({ partition in
      partition.writes.append(write)
      partition.byteCount += byteCount + Self.overheadBytes
      partition.numbers = (partition.numbers?.lowerBound ?? number)...number
    })(&partitions[partition])
  }

  /// Sends the writes of a partition, once its previous batch is acknowledged.
  mutating func send(_ partition: Int) async throws(CommandFailure) {
    try await waitForPendingBatch(of: partition)
    guard let numbers = partitions[partition].numbers else { return }
    let writes = partitions[partition].writes
    let store = store
    let result = Task.detached { () async -> LarderError? in
      do throws(LarderError) {
        try await store.putMany(writes)
        return nil
      } catch { return error }
    }
    let batch = PendingBatch(count: writes.count, numbers: numbers, result: result)
    partitions[partition] = Partition(pendingBatch: batch)
    partitions[partition].writes.reserveCapacity(writes.count)
  }

  mutating func sendAll() async throws(CommandFailure) {
    for partition in partitions.indices { try await send(partition) }
  }

  /// Sends all remaining writes and waits until everything is acknowledged.
  mutating func finish() async throws(CommandFailure) {
    try await sendAll()
    for partition in partitions.indices { try await waitForPendingBatch(of: partition) }
  }

  private mutating func waitForPendingBatch(of partition: Int) async throws(CommandFailure) {
    guard let batch = partitions[partition].pendingBatch.take() else { return }
    if let error = await batch.error {
      firstFailedNumber = min(firstFailedNumber, batch.numbers.lowerBound)
      await countRemainingBatches()
      throw failure(error, batch.numbers)
    }
    acknowledgedCount += batch.count
  }

  /// Counts the batches that succeed although another one failed.
  private mutating func countRemainingBatches() async {
    for partition in partitions.indices {
      guard let batch = partitions[partition].pendingBatch.take() else { continue }
      if await batch.error == nil {
        acknowledgedCount += batch.count
      } else {
        firstFailedNumber = min(firstFailedNumber, batch.numbers.lowerBound)
      }
    }
  }

  private func failure(_ error: LarderError, _ numbers: ClosedRange<Int>) -> CommandFailure {
    let failure = CommandFailure(error)
    if itemNoun == .copy { return failure }
    let (done, singular, plural) =
      itemNoun == .line ? ("loaded", "line", "lines") : ("restored", "entry", "entries")
    let place =
      numbers.count == 1
      ? "\(singular) \(numbers.lowerBound)" : "one of \(plural) \(numbers.lowerBound) to \(numbers.upperBound)"
    let unsent = partitions.compactMap(\.numbers?.lowerBound).min() ?? .max
    return CommandFailure(
      failure.status,
      "\(acknowledgedCount) of the entries are \(done), then \(place) failed: \(failure.message)"
        + ResumeAdvice.text(after: min(firstFailedNumber, unsent) - 1))
  }
}

/// How to continue an interrupted load or restore.
enum ResumeAdvice {
  /// - Parameter number: The number of lines or entries up to which all are written.
  static func text(after number: Int) -> String {
    "; to continue, repeat the command" + (number > 0 ? " with --resume \(number)" : "")
  }
}

extension Write {
  /// The size of the key and the value.
  var byteCount: Int { key.utf8.count + value.byteCount }
}

extension EntryValue {
  /// The size of the value, including the lengths of a list's elements.
  var byteCount: Int {
    switch self {
    case .single(let bytes): bytes.count
    case .list(let elements): elements.reduce(0) { $0 + 4 + $1.count }
    }
  }
}
