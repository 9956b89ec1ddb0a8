import Glibc
import Platform
import Wire

/// Bursts of large requests, each on its own server, and the memory that stays resident after them.
struct MemoryBursts {
  private let plan: LargePlan
  private let bursts: LargeBursts
  private let runner: BenchRunner
  /// The servers after their bursts.
  private var rested: [(work: String, server: RunningServer, residentBefore: Int)] = []
  private var figures: [MeasuredFigure] = []

  static let afterRest = Quantity("resident after the burst and a rest", "MiB")
  static let peak = Quantity("resident at most", "MiB")
  /// How long the server may accept nothing, in nanoseconds, before the connections are closed.
  private static let patience: UInt64 = 500_000_000

  init(_ plan: LargePlan, _ runner: BenchRunner) {
    self.plan = plan
    bursts = plan.bursts
    self.runner = runner
  }

  static func overwriting(_ bursts: LargeBursts) -> String {
    let load = bursts.overwritten
    return
      "\(grouped(Double(load.keys))) values of \(byteText(load.valueSize)) overwritten by \(LargeBursts.smallSize) bytes"
  }

  static func halfFrames(_ bursts: LargeBursts) -> String {
    "\(bursts.halfFrames) half frames of \(byteText(bursts.halfFrameSize)), closed"
  }

  static func unreadReplies(_ bursts: LargeBursts) -> String {
    let bytes = bursts.unread.keys * bursts.unread.valueSize
    return "one connection, \(bursts.unreadReplies) unread replies with all of \(byteText(bytes)) that are rewritten"
  }

  /// Puts large values and overwrites them with small ones.
  mutating func overwrite(_ contender: Contender) throws {
    let (server, before) = try start(contender)
    var load = try bursts.overwritten.turn("put", server, runner)
    try load.loadKeys()
    load.valueSize = LargeBursts.smallSize
    try load.loadKeys()
    rested.append((Self.overwriting(bursts), server, before))
  }

  /// Sends frames without their last byte, each over its own connection, and closes the connections when all have sent
  /// what the server accepts.
  mutating func sendHalfFrames(_ contender: Contender) throws {
    let (server, before) = try start(contender)
    var frame = ByteBuffer()
    let start = frame.beginRequest(.put, store: 1, id: 2)
    frame.append([UInt8](repeating: 0, count: bursts.halfFrameSize))
    frame.endFrame(start)
    let sent = Array(frame.toArray().dropLast())
    var connections = try (0..<bursts.halfFrames).map { _ in try OpenConnection(to: server.address, toSend: sent) }
    var lastProgress = Clocks.now()
    while Clocks.now() - lastProgress < Self.patience {
      var hasProgressed = false
      for connection in connections where connection.sendMore() { hasProgressed = true }
      if hasProgressed { lastProgress = Clocks.now() } else { usleep(1_000) }
    }
    add(Self.halfFrames(bursts), Self.peak, contender, server.residentBytes - before)
    connections.removeAll()
    rested.append((Self.halfFrames(bursts), server, before))
  }

  /// Requests all entries again and again over one connection, reads one frame of each reply, and puts all entries again
  /// after each request.
  mutating func leaveRepliesUnread(_ contender: Contender) throws {
    let (server, before) = try start(contender)
    let load = try bursts.unread.turn("put", server, runner)
    try load.loadKeys()
    let connection = try SetupConnection(to: server.address)
    let target = LarderTarget(store: server.contender.stores[0], valueSize: 0, keysPerRequest: 1)
    let session = try target.handshake(connection, credit: 1)
    var peak = 0
    for number in 0..<bursts.unreadReplies {
      try target.startAll(connection, session, id: UInt32(number + 2))
      try load.loadKeys()
      peak = max(peak, server.residentBytes)
    }
    add(Self.unreadReplies(bursts), Self.peak, contender, peak - before)
    rested.append((Self.unreadReplies(bursts), server, before))
  }

  /// Waits and returns the figures of all bursts. Stops the servers.
  mutating func measureAfterRest() -> [MeasuredFigure] {
    usleep(UInt32(plan.rest.seconds * 1e6))
    for (work, server, before) in rested {
      add(work, Self.afterRest, server.contender, server.residentBytes - before)
      server.stop()
    }
    rested = []
    return figures
  }

  private func start(_ contender: Contender) throws -> (RunningServer, Int) {
    let server = try runner.start(contender)
    return (server, server.residentBytes)
  }

  private mutating func add(_ work: String, _ quantity: Quantity, _ contender: Contender, _ bytes: Int) {
    let mebibytes = Double(max(0, bytes)) / Double(1 << 20)
    figures.append(MeasuredFigure(work, quantity, of: contender.name, [mebibytes]))
  }
}

extension RunningServer {
  fileprivate var residentBytes: Int { probe.sample()?.residentBytes ?? 0 }
}

/// A connection that sends what its server accepts, and stays open for as long as this object lives.
private final class OpenConnection {
  private let connection: SetupConnection
  private var remaining: ArraySlice<UInt8>

  init(to address: Address, toSend bytes: [UInt8]) throws {
    let connection = try SetupConnection(to: address)
    _ = try LarderTarget(store: "bench", valueSize: 0, keysPerRequest: 1).handshake(connection)
    self.connection = connection
    remaining = bytes[...]
  }

  /// Sends as many bytes as the server accepts at once. Returns whether it was any.
  func sendMore() -> Bool {
    var hasSent = false
    while !remaining.isEmpty {
      switch unsafe remaining.withUnsafeBytes({ unsafe connection.descriptor.send($0) }) {
      case .moved(let count):
        remaining = remaining.dropFirst(count)
        hasSent = true
      case .wouldBlock: return hasSent
      // The server ends connections when it holds too much of their frames.
      case .failed: remaining = []
      }
    }
    return hasSent
  }
}
