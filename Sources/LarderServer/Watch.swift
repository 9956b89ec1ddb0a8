import Storage

/// How far a watch has come: `Protocol/wire.md` §6.5. Owned by its answer.
struct Watch {
  /// Only changes under it count.
  let prefix: [UInt8]
  let isKeysOnly: Bool
  /// Where the next change stands in the store's feed.
  var place: UInt64
  /// Everything up to this revision was sent.
  var through: UInt64
  /// Where it stood when it last sent a frame.
  var toldPlace: UInt64
  /// Whether it has told of all that may be told, and waits for more.
  var isCaughtUp = false
  /// Whether nothing is left in the feed, not even what is not durable yet.
  var isAtEnd = false

  init(prefix: [UInt8], isKeysOnly: Bool, place: UInt64, through: UInt64) {
    self.prefix = prefix
    self.isKeysOnly = isKeysOnly
    self.place = place
    self.through = through
    toldPlace = place
  }

  func concerns(_ change: ChangeView) -> Bool {
    if prefix.isEmpty || change.kind == .deleteAll { return true }
    return unsafe change.key.starts(with: prefix)
  }
}

/// Tells a worker of changes in one store. The store's feed and its journal hold it, and it holds neither.
final class WatchBell: Sendable {
  private let store: ObjectIdentifier
  private let mailbox: Mailbox

  init(_ store: Store, _ mailbox: Mailbox) {
    self.store = ObjectIdentifier(store)
    self.mailbox = mailbox
  }
}

extension WatchBell: ChangeWaiter, DurabilityWaiter {
  var listener: ObjectIdentifier { ObjectIdentifier(mailbox) }
  func storeHasChanged() { mailbox.post(changed: store) }
  func durabilityDidAdvance() { mailbox.post(changed: store) }
}
