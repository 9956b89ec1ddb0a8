import Larder

/// Sends writes in batches, several of them at the same time, in constant memory.
///
/// Batches may overtake one another, so each key has its lane, and a lane sends one batch after the other: of two writes of a
/// key the later one stays. Owned by the one task that loads.
struct BatchSender: ~Copyable {
  /// A batch fits into the smallest frame that a server can be told to take.
  private static let batchBytes = 60_000
  /// What the wire has around each key and value, at most.
  private static let overheadBytes = 24
  private static let laneCount = 4

  private struct Lane {
    var writes: [Write] = []
    var bytes = 0
    var numbers: ClosedRange<Int>?
    var flight: Flight?
  }

  /// A batch that was sent.
  private struct Flight {
    let count: Int
    let numbers: ClosedRange<Int>
    let result: Task<LarderError?, Never>

    /// Why it failed, if it did. It is cancelled with the task that waits.
    var outcome: LarderError? {
      get async {
        await withTaskCancellationHandler {
          await result.value
        } onCancel: {
          result.cancel()
        }
      }
    }
  }

  /// What writes are numbered by.
  enum Source {
    case lines, backup
  }

  private let store: RemoteStore
  private let source: Source
  private var lanes = [Lane](repeating: Lane(), count: laneCount)
  /// How many writes the server has acknowledged.
  private(set) var loaded = 0

  init(_ store: RemoteStore, of source: Source) {
    self.store = store
    self.source = source
  }

  /// The lane that a write has to go through.
  static func lane(of key: String) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in key.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return Int((hash ^ hash >> 15) % UInt32(laneCount))
  }

  /// Whether the lane has to be sent before it takes a write of this size.
  func isFull(_ lane: Int, for bytes: Int) -> Bool {
    !lanes[lane].writes.isEmpty && lanes[lane].bytes + bytes + Self.overheadBytes > Self.batchBytes
  }

  mutating func add(_ write: Write, of bytes: Int, number: Int, to lane: Int) {
    ({ lane in
      lane.writes.append(write)
      lane.bytes += bytes + Self.overheadBytes
      lane.numbers = (lane.numbers?.lowerBound ?? number)...number
    })(&lanes[lane])
  }

  /// Sends what a lane holds, once its batch before has arrived.
  mutating func send(_ lane: Int) async throws(CommandFailure) {
    try await settle(lane)
    guard let numbers = lanes[lane].numbers else { return }
    let writes = lanes[lane].writes
    let store = store
    let result = Task.detached { () async -> LarderError? in
      do throws(LarderError) {
        try await store.putMany(writes)
        return nil
      } catch { return error }
    }
    lanes[lane] = Lane(flight: Flight(count: writes.count, numbers: numbers, result: result))
    lanes[lane].writes.reserveCapacity(writes.count)
  }

  mutating func sendAll() async throws(CommandFailure) {
    for lane in lanes.indices { try await send(lane) }
  }

  /// Sends what is left and waits until all has arrived.
  mutating func finish() async throws(CommandFailure) {
    try await sendAll()
    for lane in lanes.indices { try await settle(lane) }
  }

  private mutating func settle(_ lane: Int) async throws(CommandFailure) {
    guard let flight = lanes[lane].flight.take() else { return }
    if let error = await flight.outcome {
      await settleOthers()
      throw failure(error, flight.numbers)
    }
    loaded += flight.count
  }

  /// After a failure: counts what arrives nevertheless.
  private mutating func settleOthers() async {
    for lane in lanes.indices {
      guard let flight = lanes[lane].flight.take() else { continue }
      if await flight.outcome == nil { loaded += flight.count }
    }
  }

  private func failure(_ error: LarderError, _ numbers: ClosedRange<Int>) -> CommandFailure {
    let failure = CommandFailure(error)
    let (done, one, several) = source == .lines ? ("loaded", "line", "lines") : ("restored", "entry", "entries")
    let place =
      numbers.count == 1
      ? "\(one) \(numbers.lowerBound)" : "one of \(several) \(numbers.lowerBound) to \(numbers.upperBound)"
    return CommandFailure(
      failure.status, "\(loaded) of the entries are \(done), then \(place) failed: \(failure.message)")
  }
}

extension Write {
  /// The bytes of key and value, with what a list has around its elements.
  var byteCount: Int {
    switch value {
    case .single(let bytes): key.utf8.count + bytes.count
    case .list(let elements): key.utf8.count + elements.reduce(0) { $0 + 4 + $1.count }
    }
  }
}
