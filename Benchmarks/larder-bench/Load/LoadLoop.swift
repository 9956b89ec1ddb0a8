import Platform
import Synchronization
import Wire

/// The loop of one load thread, which sends requests over its connections and counts the replies.
///
/// The thread owns this value and runs it to completion. The loop never allocates, locks or dispatches dynamically.
struct LoadLoop<T: Target>: ~Copyable {
  private let goal: LoadGoal
  private var connections: LoadConnections<T.Session>
  private var writer: RequestWriter<T>
  private var pace: Pace?
  private var tally = Tally()
  private let poll: Poll
  private var events = Poll.Events(capacity: 256)
  /// The requests about to be sent over one connection.
  private var output = ByteBuffer()

  /// The number of requests that may still be sent.
  private var remaining: Int
  /// The next key to load.
  private var nextLoad: Int
  private var outstanding = 0
  private var openConnections: Int
  private var now: UInt64 = 0
  private var lastReply: UInt64 = 0
  /// Nanoseconds of busy waiting for the next scheduled request, which count as CPU time but not as work.
  private var idle: UInt64 = 0

  /// - Parameter poll: A poll in which the connections are registered by index.
  init(
    _ goal: LoadGoal, _ writer: RequestWriter<T>, pace: Pace?, connections: consuming LoadConnections<T.Session>,
    poll: consuming Poll
  ) {
    self.goal = goal
    self.writer = writer
    self.pace = pace
    openConnections = connections.count
    self.connections = connections
    self.poll = poll
    remaining = goal.requests ?? .max
    nextLoad = goal.firstLoad
  }

  /// Sends requests and counts replies until the goal is reached.
  mutating func run(progress: LoadProgress) -> ThreadOutcome {
    let cpu = Clocks.threadCPU()
    let start = Clocks.now()
    (now, lastReply) = (start, start)
    pace?.start = start
    tally.countLatencies(from: start &+ goal.warmUp)
    if pace == nil {
      for index in 0..<connections.count { refill(index) }
    }
    let end = goal.nanoseconds.map { start &+ $0 } ?? .max
    while true {
      let count = poll.wait(timeoutMilliseconds: pollTimeout(until: end), into: &events)
      let before = now
      now = Clocks.now()
      for index in 0..<count { handle(events[index]) }
      if now >= end, remaining > 0 { stopSending() }
      let released = releaseScheduled()
      if count == 0 && !released && pace != nil { idle &+= now &- before }
      progress.publish(answered: tally.answered, failures: tally.refusals + tally.protocolErrors)
      if isDone { break }
      // Stop if the server is silent for too long or all connections are lost.
      if (outstanding > 0 && now &- lastReply > goal.timeout) || openConnections == 0 { break }
    }
    tally.unanswered += outstanding
    tally.flush()
    return ThreadOutcome(
      tally: tally, start: start, end: lastReply, cpuNanoseconds: Clocks.threadCPU() - cpu, idleNanoseconds: idle)
  }

  private var isDone: Bool { remaining == 0 && outstanding == 0 }

  /// Returns the time to sleep in milliseconds: 0 shortly before a scheduled request, because sleeps overrun.
  private func pollTimeout(until end: UInt64) -> Int32 {
    guard let pace, remaining > 0 else { return 50 }
    let next = min(pace.start &+ UInt64(Double(releasedCount) * pace.interval), end)
    return next > now &+ 2_000_000 ? Int32(min(50, (next &- now) / 1_000_000 &- 1)) : 0
  }

  /// The number of this thread's requests whose scheduled time has come.
  private var releasedCount = 0

  /// Assigns requests whose scheduled time has come to their connections. Returns whether there were any.
  @inline(__always)
  private mutating func releaseScheduled() -> Bool {
    guard let pace, remaining > 0 else { return false }
    let scheduled = min(pace.scheduledCount(until: now), goal.requests ?? .max)
    guard scheduled > releasedCount else { return false }
    while releasedCount < scheduled {
      let index = releasedCount % connections.count
      connections[index].released += 1
      releasedCount += 1
      if connections[index].outstanding < goal.pipeline { refill(index) }
    }
    return true
  }

  /// Stops sending requests.
  private mutating func stopSending() {
    if pace != nil {
      _ = releaseScheduled()
      for index in 0..<connections.count {
        tally.unsent += connections[index].released - Int(connections[index].sent)
      }
    }
    remaining = 0
  }

  @inline(__always)
  private mutating func handle(_ event: Poll.Event) {
    let index = Int(event.token)
    guard connections[index].isOpen else { return }
    if event.writable { flush(index) }
    guard event.readable || event.hasHungUp else { return }
    switch connections[index].read() {
    case .wouldBlock: return
    case .moved(0), .failed: closeConnection(index)
    case .moved:
      now = Clocks.now()
      lastReply = now
      let before = connections[index].outstanding
      let isValid = connections[index].processReplies(of: writer.target, into: &tally, now: now)
      outstanding &-= before &- connections[index].outstanding
      guard isValid else { return closeConnection(index) }
      // In a closed loop, send the next batch once the whole last one is answered; at a rate, as soon as there is room.
      if pace != nil || connections[index].outstanding == 0 { refill(index) }
    }
  }

  /// Closes a connection that ended or sent malformed bytes.
  private mutating func closeConnection(_ index: Int) {
    guard connections[index].isOpen else { return }
    poll.remove(connections[index].descriptor.number)
    connections[index].isOpen = false
    tally.lostConnections += 1
    tally.unanswered += connections[index].outstanding
    outstanding -= connections[index].outstanding
    openConnections -= 1
  }
}

extension LoadLoop {
  /// Sends as many requests over a connection as its pipeline allows.
  @inline(__always)
  private mutating func refill(_ index: Int) {
    guard connections[index].isOpen, connections[index].unsent.isEmpty else { return }
    var count = min(goal.pipeline &- connections[index].outstanding, remaining)
    if pace != nil { count = min(count, connections[index].released &- Int(connections[index].sent)) }
    guard count > 0 else { return }
    output.removeAll()
    for _ in 0..<count {
      let sequence = connections[index].sent
      if goal.isLoading {
        writer.appendLoad(
          UInt64(nextLoad), to: &output, sequence: sequence, session: connections[index].session)
        nextLoad &+= 1
      } else {
        writer.append(
          to: &output, sequence: sequence, session: connections[index].session,
          followUp: &connections[index].followUp)
      }
      connections[index].recordSent(countingFrom: pace?.time(of: Int(sequence), on: index) ?? now)
    }
    remaining &-= count
    outstanding &+= count
    send(index)
  }

  /// Sends the output. Buffers what the socket does not accept, which is then sent before anything else.
  @inline(__always)
  private mutating func send(_ index: Int) {
    switch unsafe connections[index].descriptor.send(output.bytes) {
    case .moved(let count) where count == output.count: break
    case .moved(let count): bufferUnsent(index, from: count)
    case .wouldBlock: bufferUnsent(index, from: 0)
    case .failed: closeConnection(index)
    }
  }

  private mutating func bufferUnsent(_ index: Int, from count: Int) {
    output.consume(count)
    unsafe connections[index].unsent.append(output.bytes)
    poll.change(connections[index].descriptor.number, [.reading, .writing], token: UInt64(index))
  }

  /// Sends buffered bytes.
  private mutating func flush(_ index: Int) {
    switch unsafe connections[index].descriptor.send(connections[index].unsent.bytes) {
    case .moved(let count): connections[index].unsent.consume(count)
    case .wouldBlock: return
    case .failed: return closeConnection(index)
    }
    guard connections[index].unsent.isEmpty else { return }
    poll.change(connections[index].descriptor.number, .reading, token: UInt64(index))
    if connections[index].outstanding < goal.pipeline && pace != nil { refill(index) }
  }
}

/// The goal of one thread.
struct LoadGoal: Sendable {
  var pipeline: Int
  /// The number of requests after which it is reached …
  var requests: Int?
  /// … or the duration.
  var nanoseconds: UInt64?
  /// The duration from the start during which latencies are ignored, in nanoseconds.
  var warmUp: UInt64 = 0
  /// The time for which the server may be silent while replies are outstanding, in nanoseconds.
  var timeout: UInt64
  /// Whether the thread loads keys in sequence, starting with `firstLoad`.
  var isLoading = false
  var firstLoad = 0
}

/// The outcome of one thread.
struct ThreadOutcome: Sendable {
  let tally: Tally
  /// The times of the first request and the last reply, on the monotonic clock.
  let start: UInt64
  let end: UInt64
  private let cpuNanoseconds: UInt64
  private let idleNanoseconds: UInt64

  /// - Parameter idleNanoseconds: The part of the CPU time that was spent busy waiting.
  init(tally: Tally, start: UInt64, end: UInt64, cpuNanoseconds: UInt64, idleNanoseconds: UInt64) {
    self.tally = tally
    self.start = start
    self.end = end
    self.cpuNanoseconds = cpuNanoseconds
    self.idleNanoseconds = idleNanoseconds
  }

  /// The CPU time except busy waiting, in seconds.
  var busySeconds: Double { Double(cpuNanoseconds - min(cpuNanoseconds, idleNanoseconds)) / 1e9 }
}

/// The progress that a running thread publishes.
final class LoadProgress: Sendable {
  private let answeredCount = Atomic(0)
  private let failureCount = Atomic(0)

  @inline(__always)
  func publish(answered: Int, failures: Int) {
    answeredCount.store(answered, ordering: .relaxed)
    failureCount.store(failures, ordering: .relaxed)
  }

  var answered: Int { answeredCount.load(ordering: .relaxed) }
  var failures: Int { failureCount.load(ordering: .relaxed) }
}

/// A schedule of one thread's requests at a constant rate. Requests go to the connections in rotation, so that the time
/// of a connection's n-th request follows from n.
struct Pace: Sendable {
  /// Nanoseconds between two requests of the thread.
  let interval: Double
  private let connections: Int
  var start: UInt64 = 0

  /// - Parameter rate: This thread's requests per second.
  init(rate: Double, connections: Int) {
    interval = 1e9 / rate
    self.connections = connections
  }

  @inline(__always)
  func time(of request: Int, on connection: Int) -> UInt64 {
    start &+ UInt64(Double(request &* connections &+ connection) * interval)
  }

  /// Returns how many of the thread's requests are scheduled until `now`.
  @inline(__always)
  func scheduledCount(until now: UInt64) -> Int {
    now < start ? 0 : Int(Double(now &- start) / interval) &+ 1
  }
}
