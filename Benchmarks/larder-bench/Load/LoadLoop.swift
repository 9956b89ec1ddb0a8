import Platform
import Wire

/// One thread's share of a load: its connections, and the loop that sends requests over them and counts the replies.
///
/// A plain value that the thread runs to its end. Nothing in the loop allocates, waits for a lock or calls through a table.
struct LoadLoop<T: Target>: ~Copyable {
  let goal: LoadGoal
  var connections: LoadConnections<T.Session>
  var writer: RequestWriter<T>
  var pace: Pace?
  var tally = Tally()
  let poll: Poll
  private var events = Poll.Events(capacity: 256)
  /// The requests of one turn of one connection.
  var output = ByteBuffer()

  /// Requests that may still be sent, and the next key to load.
  var remaining: Int
  var nextLoad: Int
  var outstanding = 0
  private var openConnections: Int
  private(set) var now: UInt64 = 0
  private var lastAnswer: UInt64 = 0
  /// Nanoseconds of looking for replies that had not come, at a constant rate; it is CPU time, but no work.
  private var idle: UInt64 = 0

  /// - Parameter poll: watches the connections already, by their indices.
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

  /// Sends and counts until the goal is reached.
  mutating func run(progress: LoadProgress) -> LoadShare {
    let cpu = Clocks.threadCPU()
    let start = Clocks.now()
    (now, lastAnswer) = (start, start)
    pace?.start = start
    tally.latenciesCountFrom = start &+ goal.warmUp
    if pace == nil {
      for index in 0..<connections.count { refill(index) }
    }
    let end = goal.nanoseconds.map { start &+ $0 } ?? .max
    while true {
      let count = poll.wait(timeoutMilliseconds: timeout(until: end), into: &events)
      let before = now
      now = Clocks.now()
      for index in 0..<count { handle(events[index]) }
      if now >= end, remaining > 0 { stopSending() }
      let released = release()
      if count == 0 && !released && pace != nil { idle &+= now &- before }
      progress.publish(answered: tally.answered, failures: tally.refusals + tally.protocolErrors)
      if isDone { break }
      // Out of patience, or out of connections.
      if (outstanding > 0 && now &- lastAnswer > goal.patience) || openConnections == 0 { break }
    }
    tally.unanswered += outstanding
    tally.flush()
    return LoadShare(
      tally: tally, start: start, end: lastAnswer, cpuNanoseconds: Clocks.threadCPU() - cpu, idleNanoseconds: idle)
  }

  private var isDone: Bool { remaining == 0 && outstanding == 0 }

  /// Milliseconds. Requests that are planned sooner than that are waited for without sleeping, because a sleep ends late.
  private func timeout(until end: UInt64) -> Int32 {
    guard let pace, remaining > 0 else { return 50 }
    let next = min(pace.start &+ UInt64(Double(releasedCount) * pace.interval), end)
    return next > now &+ 2_000_000 ? Int32(min(50, (next &- now) / 1_000_000 &- 1)) : 0
  }

  /// Requests of the thread whose planned time has come.
  private var releasedCount = 0

  /// Hands the requests whose time has come to their connections.
  @inline(__always)
  private mutating func release() -> Bool {
    guard let pace, remaining > 0 else { return false }
    let planned = min(pace.planned(until: now), goal.requests ?? .max)
    guard planned > releasedCount else { return false }
    while releasedCount < planned {
      let index = releasedCount % connections.count
      connections[index].released += 1
      releasedCount += 1
      if connections[index].outstanding < goal.pipeline { refill(index) }
    }
    return true
  }

  /// No more requests are sent from now on.
  private mutating func stopSending() {
    if pace != nil {
      _ = release()
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
    guard event.readable || event.hungUp else { return }
    switch connections[index].read() {
    case .wouldBlock: return
    case .moved(0), .failed: lose(index)
    case .moved:
      now = Clocks.now()
      lastAnswer = now
      let before = connections[index].outstanding
      let isUnderstood = connections[index].takeReplies(of: writer.target, into: &tally, now: now)
      outstanding &-= before &- connections[index].outstanding
      guard isUnderstood else { return lose(index) }
      // In a closed loop the next requests go when all of the last ones are answered; at a rate, when there is room.
      if pace != nil || connections[index].outstanding == 0 { refill(index) }
    }
  }

  /// Gives up a connection that ended or can't be understood.
  mutating func lose(_ index: Int) {
    guard connections[index].isOpen else { return }
    poll.remove(connections[index].descriptor.number)
    connections[index].isOpen = false
    tally.lostConnections += 1
    tally.unanswered += connections[index].outstanding
    outstanding -= connections[index].outstanding
    openConnections -= 1
  }
}
