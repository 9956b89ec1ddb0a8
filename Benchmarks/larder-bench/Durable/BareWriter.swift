import Platform
import Storage

/// Writes as many bytes as a log does for a put, and has them on the disk, again and again: what a single client can't outrun.
struct BareWriter {
  private let file: any File
  private let bytes: [UInt8]
  private let isPreallocated: Bool
  private var end = 0
  private var capacity = 0
  /// As much as a large log takes ahead.
  private static let allocation = 64 << 20

  /// Makes the file.
  /// - Parameter isPreallocated: whether the disk's space is taken ahead, as a log does it.
  init(_ path: String, keySize: Int, valueSize: Int, isPreallocated: Bool) throws {
    let revisionSize = 8
    bytes = BenchValue.bytes(
      size: CommitBuffer.recordHeaderByteCount + revisionSize + CommitBuffer.operationHeaderByteCount + keySize
        + valueSize)
    self.isPreallocated = isPreallocated
    file = try LocalFileSystem().open(path, .making)
    try makeRoom()
  }

  mutating func run(for duration: Duration) throws -> LoadOutcome {
    var tally = Tally()
    let cpu = Clocks.threadCPU()
    let start = Clocks.now()
    var now = start
    let last = start &+ duration.nanoseconds
    while now < last {
      let before = now
      try makeRoom()
      unsafe try bytes.withUnsafeBytes { unsafe try file.write($0, at: end) }
      try file.sync()
      end += bytes.count
      now = Clocks.now()
      tally.record(since: before, now: now)
    }
    tally.flush()
    let share = LoadShare(
      tally: tally, start: start, end: now, cpuNanoseconds: Clocks.threadCPU() - cpu, idleNanoseconds: 0)
    return LoadOutcome(shares: [share], before: nil, after: nil)
  }

  private mutating func makeRoom() throws {
    guard isPreallocated, end + bytes.count > capacity else { return }
    capacity += Self.allocation
    try file.allocate(capacity)
    try file.sync()
  }
}
