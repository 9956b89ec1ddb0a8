import Wire

extension RESPRequest {
  /// Whether rights that depend on keys permit the request, which is on entries.
  func isPermitted(_ bytes: RawSpan, by rights: StoreRights) -> Bool {
    guard let right = command.descriptor.operation?.descriptor.right else { return false }
    switch command {
    // What it executes was permitted when it was queued; see `didChangeRights`.
    case .exec: return true
    // All scripts use their first key only.
    case .eval, .evalsha: return count <= 3 || rights.right(to: bytes.extracting(word(3, bytes))) >= right
    default:
      let keys = command.descriptor.keys
      guard keys.step > 0 else { return rights.toAll >= right }
      let last = keys.last < 0 ? count + keys.last : keys.last
      var words = words(from: keys.first, bytes)
      var position = keys.first
      while position <= last, let word = words.next(bytes) {
        if (position - keys.first).isMultiple(of: keys.step) {
          guard rights.right(to: bytes.extracting(word)) >= right else { return false }
        }
        position += 1
      }
      return true
    }
  }

  /// What the request does with channels, as it reads after "may not"; nil if it may, or does nothing with any.
  ///
  /// Channels belong to no store, so they take a right to the server. Anyone may subscribe to the changes of stores, but
  /// gets only those of stores that it may read.
  func actionOnChannels(_ bytes: RawSpan, refusedBy grants: Grants) -> String? {
    switch command {
    case .publish: return grants.onAll >= .write ? nil : "publish messages"
    case .pubsub: return grants.onAll >= .read ? nil : "list channels"
    case .psubscribe, .subscribe:
      if grants.onAll >= .read { return nil }
      var names = words(from: 1, bytes)
      while let name = names.next(bytes) {
        guard bytes.extracting(name).starts(with: Array("__key".utf8)) else { return "subscribe to channels" }
      }
      return nil
    default: return nil
    }
  }
}
