/// What one connection knows of the stores of its client: a plain value. Owned by the connection's lock, and forgotten with the connection.
///
/// A name is opened again only once the requests with its old handle are finished (`Protocol/wire.md` §6.3): otherwise they would
/// mean another store.
struct StoreHandles {
  enum State: Equatable {
    case closed
    /// Somebody has sent the name, and others wait.
    case opening
    case open(UInt16)
    /// The server no longer knows the handle, and earlier requests with it may be unfinished.
    case stale
  }

  private var states: [State] = []

  subscript(store: UInt16) -> State {
    get { Int(store) < states.count ? states[Int(store)] : .closed }
    set {
      while states.count <= Int(store) { states.append(.closed) }
      states[Int(store)] = newValue
    }
  }

  /// Whether some handle is stale, so that finished requests are to be looked at.
  private(set) var hasStale = false

  /// The server does not know the store's handle any more.
  mutating func refused(_ store: UInt16) {
    guard case .open = self[store] else { return }
    self[store] = .stale
    hasStale = true
  }

  /// Lets stale names be opened again whose requests are finished.
  mutating func settle(hasRequest: (UInt16) -> Bool) {
    hasStale = false
    for index in states.indices where states[index] == .stale {
      if hasRequest(UInt16(index)) { hasStale = true } else { states[index] = .closed }
    }
  }

  mutating func forgetAll() {
    states.removeAll(keepingCapacity: true)
    hasStale = false
  }
}
