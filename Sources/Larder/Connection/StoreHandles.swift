/// The stores that a connection has open, and the calls that wait for one.
///
/// The client numbers the stores that it knows by name, without a limit; the server gives a handle to each store that a
/// connection opens, and limits how many a connection may have. So when all handles are in use, the least recently used
/// store that no call needs is closed for the next one. A name is opened again only after the requests with its old
/// handle are finished (`Protocol/wire.md` §6.3): otherwise they would address another store.
///
/// A plain value; the lock of the connection's state protects it. It is reset when the connection ends.
struct StoreHandles<Caller: Sendable>: Sendable {
  private enum State: Equatable {
    case closed
    /// A call has sent the name, or is about to, and other calls wait. A dropped store still has its old handle.
    case opening(oldHandle: UInt16?)
    case open(handle: UInt16)
    /// The server has dropped the store, and earlier requests with the handle may be unfinished.
    case stale(handle: UInt16)
    /// The server has dropped the store, but the handle still counts. The name can be opened again.
    case dropped(handle: UInt16)
  }

  private struct Store {
    var state = State.closed
    /// The token of the last call that used the store: tokens increase.
    var lastUse: UInt64 = 0
    /// The token of the call that opened the store.
    var opener: UInt64 = 0
    /// Until when the store is not closed for another one unless it has been used, in milliseconds: the calls that
    /// opened it are on their way.
    var protectedUntil: UInt64 = 0
  }

  /// How long an unused store is protected, in milliseconds. After that, calls that wait for a handle must try again.
  static var protectionMilliseconds: UInt64 { 100 }

  /// The stores by their numbers; a store beyond the end is closed.
  private var stores: [Store] = []
  /// The numbers of the stores that have a handle, or are about to.
  private var inUse: [UInt32] = []
  private(set) var hasStaleHandles = false
  /// The calls that wait for another call to open a store, by the store's number.
  private var openWaiters: [UInt32: WaiterQueue<Caller>] = [:]
  /// The calls that wait for a handle because all are in use.
  private var handleWaiters = WaiterQueue<Caller>()

  /// What a call does about the store that it needs.
  enum Lookup {
    case use(handle: UInt16)
    /// The call must open the store.
    case open
    /// Another call is opening the store; wait for it.
    case wait
  }

  /// Looks up the handle of a store, and marks the store as used.
  @inline(__always)
  mutating func lookUp(_ store: UInt32, token: UInt64) -> Lookup {
    let index = Int(store)
    guard index < stores.count else { return .open }
    switch stores[index].state {
    case .open(let handle):
      stores[index].lastUse = token
      return .use(handle: handle)
    case .closed, .dropped: return .open
    case .opening, .stale: return .wait
    }
  }

  // MARK: Handles

  /// Whether opening a store needs no other to be closed first.
  /// - Parameters:
  ///   - busy: The stores with requests that the server has not begun to answer.
  ///   - limit: The number of stores that the server lets a connection open.
  func hasHandle(for store: UInt32, busy: Set<UInt32>, limit: Int) -> Bool {
    handleCount(busy) < limit || state(of: store) != .closed || busy.contains(store)
  }

  /// The number of handles that are in use, or will be when the server has processed all requests.
  private func handleCount(_ busy: Set<UInt32>) -> Int {
    // The request of a closed store is one to open it, whose call has given up.
    inUse.count + busy.count { state(of: $0) == .closed }
  }

  private func state(of store: UInt32) -> State { Int(store) < stores.count ? stores[Int(store)].state : .closed }

  /// Whether a call can open a store, and none does.
  func isClosed(_ store: UInt32) -> Bool {
    switch state(of: store) {
    case .closed, .dropped: true
    case .opening, .open, .stale: false
    }
  }

  /// Records that a call opens a store. Others that need the store wait until `opened` or `openFailed`.
  mutating func beginOpening(_ store: UInt32, token: UInt64) {
    let index = Int(store)
    if index < stores.count, case .dropped(let handle) = stores[index].state {
      set(store, .opening(oldHandle: handle))
    } else {
      set(store, .opening(oldHandle: nil))
    }
    stores[index].lastUse = token
    stores[index].opener = token
  }

  /// Records the server's reply to a request that opened a store. The call that sent it may have given up since.
  mutating func opened(_ store: UInt32, handle: UInt16, now: UInt64) {
    set(store, .open(handle: handle))
    stores[Int(store)].protectedUntil = now + Self.protectionMilliseconds
  }

  /// Records that a call that was to open a store gave up or was refused.
  mutating func openFailed(_ store: UInt32) {
    guard Int(store) < stores.count, case .opening(let oldHandle) = stores[Int(store)].state else { return }
    set(store, oldHandle.map { .dropped(handle: $0) } ?? .closed)
  }

  /// Records that the server no longer knows the store's handle.
  mutating func refused(_ store: UInt32) {
    guard Int(store) < stores.count, case .open(let handle) = stores[Int(store)].state else { return }
    set(store, .stale(handle: handle))
    hasStaleHandles = true
  }

  /// Lets the stale stores whose requests are finished be opened again.
  mutating func settleStaleHandles(hasRequest: (UInt32) -> Bool) {
    hasStaleHandles = false
    for store in inUse {
      guard case .stale(let handle) = stores[Int(store)].state else { continue }
      if hasRequest(store) { hasStaleHandles = true } else { set(store, .dropped(handle: handle)) }
    }
  }

  /// Closes the least recently used store that no request waits for. O(stores in use).
  /// - Returns: The handle for the request that closes the store, or nil if all stores are busy.
  mutating func closeLeastRecentlyUsed(busy: Set<UInt32>, now: UInt64) -> UInt16? {
    let candidates = inUse.filter { canClose($0, busy, now) }
    guard let store = candidates.min(by: { stores[Int($0)].lastUse < stores[Int($1)].lastUse }),
      let handle = handle(of: store)
    else { return nil }
    set(store, .closed)
    return handle
  }

  /// How many stores could have a handle without closing a busy one.
  func availableHandles(busy: Set<UInt32>, limit: Int, now: UInt64) -> Int {
    max(0, limit - handleCount(busy)) + inUse.count { canClose($0, busy, now) }
  }

  private func canClose(_ store: UInt32, _ busy: Set<UInt32>, _ now: UInt64) -> Bool {
    let state = stores[Int(store)]
    let isProtected = state.lastUse == state.opener && now < state.protectedUntil
    return handle(of: store) != nil && !busy.contains(store) && !isProtected
  }

  /// The handle of a store that is open, or was dropped and can be opened again.
  private func handle(of store: UInt32) -> UInt16? {
    switch stores[Int(store)].state {
    case .open(let handle), .dropped(let handle): handle
    case .closed, .opening, .stale: nil
    }
  }

  private mutating func set(_ store: UInt32, _ state: State) {
    while stores.count <= Int(store) { stores.append(Store()) }
    let old = stores[Int(store)].state
    stores[Int(store)].state = state
    if old == .closed, state != .closed { inUse.append(store) }
    if old != .closed, state == .closed, let index = inUse.firstIndex(of: store) { inUse.remove(at: index) }
  }

  // MARK: Waiters

  /// Whether no call opens a store, or waits for a store or a handle.
  var isIdle: Bool {
    handleWaiters.isEmpty && openWaiters.values.allSatisfy(\.isEmpty) && !inUse.contains { isBeingOpened($0) }
  }

  private func isBeingOpened(_ store: UInt32) -> Bool { if case .opening = state(of: store) { true } else { false } }

  var hasHandleWaiters: Bool { !handleWaiters.isEmpty }

  /// Lets a call wait until another one has opened a store.
  mutating func waitForOpening(of store: UInt32, _ caller: Caller, token: UInt64, deadline: UInt64) {
    openWaiters[store, default: WaiterQueue()].append(caller, token: token, deadline: deadline)
  }

  /// Lets a call wait until a handle may be available.
  mutating func waitForHandle(_ caller: Caller, token: UInt64, deadline: UInt64) {
    handleWaiters.append(caller, token: token, deadline: deadline)
  }

  /// Removes and returns the calls that wait for a store to be opened.
  mutating func popWaiters(for store: UInt32) -> [Caller] {
    var waiters = openWaiters.removeValue(forKey: store)
    return waiters?.popAll() ?? []
  }

  /// Removes and returns the calls that wait for a store that is open now, or that they can open themselves.
  mutating func popReadyWaiters() -> [Caller] {
    var ready: [Caller] = []
    for store in Array(openWaiters.keys) {
      switch state(of: store) {
      case .open, .closed, .dropped: ready += popWaiters(for: store)
      case .opening, .stale: continue
      }
    }
    return ready
  }

  /// Removes and returns the first calls that wait for a handle.
  mutating func popHandleWaiters(_ maxCount: Int) -> [Caller] {
    var callers: [Caller] = []
    while callers.count < maxCount, let caller = handleWaiters.popFirst() { callers.append(caller) }
    return callers
  }

  /// Removes and returns the waiting call with a token, or returns nil if it doesn't wait here.
  mutating func removeWaiter(token: UInt64) -> Caller? {
    if let caller = handleWaiters.remove(token: token) { return caller }
    for store in openWaiters.keys {
      if let caller = openWaiters[store]?.remove(token: token) { return caller }
    }
    return nil
  }

  /// Removes the calls whose deadline has passed.
  /// - Returns: Those that waited for a store, those that waited for a handle, and the earliest deadline among the
  ///   others.
  mutating func expire(now: UInt64) -> (callers: [Caller], handleWaiters: [Caller], nextDeadline: UInt64) {
    let (withoutHandle, next) = handleWaiters.expire(now: now)
    var nextDeadline = next
    var callers: [Caller] = []
    for store in Array(openWaiters.keys) {
      let (expired, next) = openWaiters[store]!.expire(now: now)
      callers += expired
      nextDeadline = min(nextDeadline, next)
    }
    return (callers, withoutHandle, nextDeadline)
  }

  /// Forgets all handles, because the connection is gone.
  /// - Returns: The calls that waited for a store or a handle.
  mutating func reset() -> [Caller] {
    stores.removeAll(keepingCapacity: true)
    inUse.removeAll(keepingCapacity: true)
    hasStaleHandles = false
    var callers = handleWaiters.popAll()
    for store in Array(openWaiters.keys) { callers += popWaiters(for: store) }
    return callers
  }
}
