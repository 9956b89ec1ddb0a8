/// Names a connection to the poll: its slot in the table, and a generation that tells it from the slot's earlier ones.
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

/// The connections of one worker, in slots that are used again. Finding, adding and removing one are O(1).
@safe
struct ConnectionTable: ~Copyable {
  /// A connection where `tokens` has one for the slot, and no value elsewhere.
  private var slots: UnsafeMutablePointer<Connection>
  private var tokens: [ConnectionToken?]
  private var free: [Int]
  private var generation: UInt32 = 0

  /// How many slots there are, free ones included.
  var capacity: Int { tokens.count }
  var count: Int { tokens.count - free.count }

  init() {
    unsafe slots = .allocate(capacity: 16)
    tokens = Array(repeating: nil, count: 16)
    free = Array((0..<16).reversed())
  }

  deinit {
    for slot in 0..<capacity where tokens[slot] != nil { unsafe (slots + slot).deinitialize(count: 1) }
    unsafe slots.deallocate()
  }

  func holds(_ token: ConnectionToken) -> Bool { token.slot < capacity && tokens[token.slot] == token }

  func isOccupied(_ slot: Int) -> Bool { tokens[slot] != nil }

  /// The connection in a slot that is occupied. It is changed in place.
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

  /// A token for the next connection.
  mutating func makeToken() -> ConnectionToken {
    if free.isEmpty { grow() }
    // The greatest number of all is the mailbox's.
    generation = (generation &+ 1) & 0x7FFF_FFFF
    return ConnectionToken(slot: free[free.count - 1], generation: generation)
  }

  /// Adds a connection under the token that was made last.
  mutating func add(_ connection: consuming Connection) {
    let token = connection.token
    let slot = free.removeLast()
    precondition(slot == token.slot)
    tokens[token.slot] = token
    unsafe (slots + token.slot).initialize(to: connection)
  }

  mutating func remove(_ slot: Int) {
    precondition(isOccupied(slot))
    unsafe (slots + slot).deinitialize(count: 1)
    tokens[slot] = nil
    free.append(slot)
  }

  /// Doubles a table whose slots are all occupied.
  private mutating func grow() {
    let capacity = capacity
    let larger = UnsafeMutablePointer<Connection>.allocate(capacity: 2 * capacity)
    unsafe larger.moveInitialize(from: slots, count: capacity)
    unsafe slots.deallocate()
    unsafe slots = larger
    tokens += Array(repeating: nil, count: capacity)
    free = Array((capacity..<2 * capacity).reversed())
  }
}
