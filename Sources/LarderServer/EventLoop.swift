import Basics
import Platform
import Wire

/// A worker's connections and the loop that serves them.
///
/// A plain value that one thread at a time runs. The table and what serves its connections are apart, so that a connection can be changed in
/// place while it is served.
struct EventLoop: ~Copyable {
  private var connections = ConnectionTable()
  private var service: Service
  private let mailbox: Mailbox
  private var events = Poll.Events(capacity: 256)
  private var isDraining = false

  /// The epoll descriptor, readable while there is something to do.
  let descriptor: Int32

  /// - Parameter poll: watches the mailbox already.
  init(server: ServerState, metrics: WorkerMetrics, mailbox: Mailbox, poll: consuming Poll) {
    descriptor = poll.descriptor.number
    service = Service(server, metrics, mailbox, poll)
    self.mailbox = mailbox
  }

  /// Whether the end was asked for and no connection is left.
  var hasDrained: Bool { isDraining && connections.count == 0 }

  /// Serves until no connection is left.
  mutating func runWhileConnected() {
    repeat {
      let count = service.poll.wait(timeoutMilliseconds: timeout(), into: &events)
      let begun = monotonicNanoseconds()
      service.batch.now = begun / 1_000_000
      var (index, hasMail) = (0, false)
      while index < count {
        let end = min(count, index + Turn.capacity)
        while index < end {
          let event = events[index]
          if event.token == Mailbox.token { hasMail = true } else { receive(event) }
          index += 1
        }
        serveTurn()
      }
      if hasMail { readMailbox() }
      service.endWakeUp(begun: begun)
      if service.batch.now >= service.nextSweep { sweep() }
    } while connections.count > 0
  }

  private func timeout() -> Int32 {
    guard connections.count > 0 else { return 0 }
    guard service.nextSweep != .max else { return -1 }
    return service.nextSweep <= service.batch.now ? 0 : Int32(clamping: service.nextSweep - service.batch.now)
  }

  @inline(__always)
  private mutating func receive(_ event: Poll.Event) {
    let token = ConnectionToken(event.token)
    // The connection may have ended in this very turn, and its slot may have another one.
    guard connections.holds(token) else { return }
    let waiting = service.turn.count
    service.receive(event, &connections[token.slot])
    // Otherwise the rest comes with the turn.
    if service.turn.count == waiting { settle(token.slot) }
  }

  /// Executes what waits in the turn, then sends the answers.
  @inline(__always)
  private mutating func serveTurn() {
    let count = service.turn.count
    var index = 0
    while index < count {
      let end = lookAhead(from: index)
      while index < end {
        let token = service.turn[index].token
        if connections.holds(token) { service.execute(index, &connections[token.slot]) }
        index += 1
      }
    }
    service.batch.letGo()
    for index in 0..<count {
      let token = service.turn[index].token
      guard connections.holds(token) else { continue }
      service.answer(index, &connections[token.slot])
      settle(token.slot)
    }
    service.turn.removeAll()
  }

  /// - Returns: the end of the connections that can be executed now.
  @inline(__always)
  private mutating func lookAhead(from first: Int) -> Int {
    var index = first
    // A connection by itself looks ahead as it goes.
    guard service.turn.count - first > 1 else { return first + 1 }
    repeat {
      let token = service.turn[index].token
      if connections.holds(token) { service.lookAhead(index, &connections[token.slot]) }
      index += 1
    } while index < service.turn.count && !service.batch.hasLookedFarEnough
    service.batch.askForNotedRecords()
    return index
  }

  /// Takes a connection that is done with off the table, and another if the output of all is too much.
  @inline(__always)
  private mutating func settle(_ slot: Int) {
    service.noteInput(of: &connections[slot])
    if connections[slot].phase == .closed { remove(slot) }
    while service.hasTooMuchOutput, dropLongestStalled() {}
  }

  private mutating func remove(_ slot: Int) {
    service.finish(&connections[slot])
    connections.remove(slot)
  }

  private mutating func readMailbox() {
    let mail = mailbox.read()
    if mail.hasNewLimits {
      service.takeNewLimits()
      forEachConnection { service, connection in service.takeNewAccess(&connection) }
    }
    for arrival in mail.arrivals { open(Descriptor(owning: arrival.socket), from: arrival.listener) }
    openGates()
    for store in mail.changed { wakeWatches(of: store) }
    if mail.drains, !isDraining { drain() }
    for answer in mail.probes { answer() }
  }

  /// Sends what waited for a journal that has moved.
  private mutating func openGates() {
    guard !service.waitingAtGates.isEmpty else { return }
    var tokens: [ConnectionToken] = []
    swap(&tokens, &service.waitingAtGates)
    for token in tokens where connections.holds(token) {
      connections[token.slot].isWaitingAtGates = false
      service.settle(&connections[token.slot])
      settle(token.slot)
    }
  }

  /// Has those go on who wait for changes of a store.
  private mutating func wakeWatches(of store: ObjectIdentifier) {
    for token in service.takeWatchers(of: store) where connections.holds(token) {
      service.wakeWatches(of: store, &connections[token.slot])
      service.settle(&connections[token.slot])
      settle(token.slot)
    }
  }

  private mutating func open(_ socket: consuming Descriptor, from listener: Int) {
    let token = connections.makeToken()
    let number = socket.number
    do throws(SystemError) {
      try service.poll.add(number, Connection.initialInterest, token: token.number)
    } catch {
      // Out of memory for the watch: the client sees its connection end and tries again later.
      service.server.connections.subtract(1, ordering: .relaxed)
      return
    }
    let figures = service.server.registry.add(Socket.peer(of: socket), now: service.batch.now)
    connections.add(Connection(socket, token: token, listener: listener, figures, now: service.batch.now))
    service.sweepNoLater(than: service.batch.now + service.batch.limits.helloTimeout.wholeMilliseconds)
  }

  /// Answers what has come, gives open answers their time, and ends all connections.
  private mutating func drain() {
    isDraining = true
    forEachConnection { service, connection in service.readToTheEnd(&connection) }
    service.beginDrain()
    forEachConnection { service, connection in service.settle(&connection) }
  }

  private mutating func sweep() {
    service.beginSweep()
    forEachConnection { service, connection in service.endWhatIsDue(&connection) }
  }

  private mutating func forEachConnection(_ body: (inout Service, inout Connection) -> Void) {
    for slot in 0..<connections.capacity where connections.isOccupied(slot) {
      body(&service, &connections[slot])
      settle(slot)
    }
  }

  /// Drops the client that has left its answers unread for the longest time.
  /// - Returns: whether there was one.
  private mutating func dropLongestStalled() -> Bool {
    var worst: (slot: Int, since: UInt64)?
    for slot in 0..<connections.capacity where connections.isOccupied(slot) {
      guard let since = connections[slot].stalledSince, since < worst?.since ?? .max else { continue }
      worst = (slot, since)
    }
    guard let worst else { return false }
    remove(worst.slot)
    return true
  }
}
