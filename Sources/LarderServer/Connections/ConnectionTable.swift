/// The connections of one worker, in slots that are reused. Finding, adding and removing a connection are O(1).
///
/// Owned by the worker's `EventLoop`. A connection is changed in place, and never moves while it is being accessed.
@safe
struct ConnectionTable: ~Copyable {
  /// A connection where `tokens` has one for the slot, and uninitialized memory elsewhere.
  private var slots: UnsafeMutablePointer<Connection>
  private var tokens: [ConnectionToken?]
  private var freeSlots: [Int]
  private var generation: UInt32 = 0

  /// The number of slots, including free ones.
  var capacity: Int { tokens.count }
  var count: Int { tokens.count - freeSlots.count }

  init() {
    unsafe slots = .allocate(capacity: 16)
    tokens = Array(repeating: nil, count: 16)
    freeSlots = Array((0..<16).reversed())
  }

  deinit {
    for slot in 0..<capacity where tokens[slot] != nil { unsafe (slots + slot).deinitialize(count: 1) }
    unsafe slots.deallocate()
  }

  /// Whether the connection that the token names is still in the table.
  func contains(_ token: ConnectionToken) -> Bool { token.slot < capacity && tokens[token.slot] == token }

  func isOccupied(_ slot: Int) -> Bool { tokens[slot] != nil }

  /// The connection in an occupied slot.
  ///
  /// Safe because the slot is checked, and the table can't be changed while one of its slots is being accessed.
  subscript(slot: Int) -> Connection {
    @inline(__always)
    unsafeAddress {
      precondition(isOccupied(slot))
      return unsafe UnsafePointer(slots + slot)
    }
    @inline(__always)
    unsafeMutableAddress {
      precondition(isOccupied(slot))
      return unsafe slots + slot
    }
  }

  /// Makes the token of the next connection.
  mutating func makeToken() -> ConnectionToken {
    if freeSlots.isEmpty { grow() }
    // The greatest number is the mailbox's token.
    generation = (generation &+ 1) & 0x7FFF_FFFF
    return ConnectionToken(slot: freeSlots[freeSlots.count - 1], generation: generation)
  }

  /// Adds a connection that has the token which was made last.
  mutating func add(_ connection: consuming Connection) {
    let token = connection.token
    let slot = freeSlots.removeLast()
    precondition(slot == token.slot)
    tokens[token.slot] = token
    unsafe (slots + token.slot).initialize(to: connection)
  }

  mutating func remove(_ slot: Int) {
    precondition(isOccupied(slot))
    unsafe (slots + slot).deinitialize(count: 1)
    tokens[slot] = nil
    freeSlots.append(slot)
  }

  /// Doubles a table that has no free slot.
  private mutating func grow() {
    let capacity = capacity
    let larger = UnsafeMutablePointer<Connection>.allocate(capacity: 2 * capacity)
    unsafe larger.moveInitialize(from: slots, count: capacity)
    unsafe slots.deallocate()
    unsafe slots = larger
    tokens += Array(repeating: nil, count: capacity)
    freeSlots = Array((capacity..<2 * capacity).reversed())
  }
}

/// Names a connection in epoll events: its slot in the table, and a generation that tells it from earlier connections
/// in the slot.
struct ConnectionToken: Equatable {
  let slot: Int
  private let generation: UInt32

  init(slot: Int, generation: UInt32) {
    self.slot = slot
    self.generation = generation
  }

  init(_ number: UInt64) {
    slot = Int(number & 0xFFFF_FFFF)
    generation = UInt32(number >> 32)
  }

  var number: UInt64 { UInt64(generation) << 32 | UInt64(slot) }
}
