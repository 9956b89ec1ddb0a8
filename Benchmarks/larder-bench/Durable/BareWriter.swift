import Platform
import Storage

/// A loop that writes and syncs as many bytes as the log does for a put: the upper bound for a single client.
struct BareWriter {
  private let file: any File
  private let bytes: [UInt8]
  private let isPreallocated: Bool
  private var end = 0
  private var capacity = 0
  /// The allocation step of a large log.
  private static let allocation = 64 << 20

  /// Creates the file.
  /// - Parameter isPreallocated: Whether space is allocated in advance, as the log does.
  init(_ path: String, keySize: Int, valueSize: Int, isPreallocated: Bool) throws {
    let revisionSize = 8
    bytes = BenchValue.bytes(
      size: CommitBuffer.recordHeaderByteCount + revisionSize + CommitBuffer.operationHeaderByteCount + keySize
        + valueSize)
    self.isPreallocated = isPreallocated
    file = try LocalFileSystem().open(path, .creating)
    try preallocate()
  }

  mutating func run(for duration: Duration) throws -> LoadOutcome {
    var tally = Tally()
    let cpu = Clocks.threadCPU()
    let start = Clocks.now()
    var now = start
    let last = start &+ duration.nanoseconds
    while now < last {
      let before = now
      try preallocate()
      unsafe try bytes.withUnsafeBytes { unsafe try file.write($0, at: end) }
      try file.sync()
      end += bytes.count
      now = Clocks.now()
      tally.record(since: before, now: now)
    }
    tally.flush()
    let thread = ThreadOutcome(
      tally: tally, start: start, end: now, cpuNanoseconds: Clocks.threadCPU() - cpu, idleNanoseconds: 0)
    return LoadOutcome(threads: [thread], before: nil, after: nil)
  }

  private mutating func preallocate() throws {
    guard isPreallocated, end + bytes.count > capacity else { return }
    capacity += Self.allocation
    try file.allocate(capacity)
    try file.sync()
  }
}
