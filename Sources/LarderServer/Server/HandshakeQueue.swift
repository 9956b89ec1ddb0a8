import Platform

/// The tokens of handshakes under way, by where their clients are, so that one place can't take the room of all others.
struct HandshakeQueue {
  /// Those of one origin, from the oldest to the newest.
  private struct Line {
    /// Also has tokens of handshakes that have ended, until there are too many of them.
    var tokens: ArraySlice<UInt64> = []
    var count = 0
  }

  private var lines: [Peer.Origin: Line] = [:]

  /// Adds a handshake, which is the newest.
  mutating func add(_ token: UInt64, from origin: Peer.Origin) {
    lines[origin, default: Line()].tokens.append(token)
    lines[origin, default: Line()].count += 1
  }

  /// Removes a handshake that has ended.
  /// - Parameter isOpen: Returns whether a handshake is still under way.
  mutating func remove(from origin: Peer.Origin, isOpen: (UInt64) -> Bool) {
    guard var line = lines.removeValue(forKey: origin) else { return }
    line.count -= 1
    guard line.count > 0 else { return }
    while let oldest = line.tokens.first, !isOpen(oldest) { line.tokens.removeFirst() }
    if line.tokens.count > 2 * line.count + 16 { line.tokens = line.tokens.filter(isOpen)[...] }
    lines[origin] = line
  }

  /// The oldest handshake of the origin that has most of them; nil if there are none.
  /// - Parameter isOpen: Returns whether a handshake is still under way.
  /// - Complexity: O(*n*) in the number of origins.
  func oldestOfMost(isOpen: (UInt64) -> Bool) -> UInt64? {
    lines.values.max { $0.count < $1.count }?.tokens.first(where: isOpen)
  }
}
