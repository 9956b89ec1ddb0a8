import Platform
import Storage
import Synchronization
import Wire

/// The channels of a server, to which clients publish messages for those that subscribe. Used by any thread.
///
/// Messages aren't stored: each goes to the inboxes of the current subscribers, from where their workers send it.
final class RESPChannels: Sendable {
  private typealias Inboxes = [ObjectIdentifier: RESPInbox]

  private struct Subscriptions {
    var channels: [[UInt8]: Inboxes] = [:]
    var patterns: [[UInt8]: (pattern: GlobPattern, inboxes: Inboxes)] = [:]
  }

  private let subscriptions = Lock(Subscriptions())
  fileprivate let unread = UnreadMessages()

  // MARK: Subscribing

  /// Adds a subscription, unless there is the same one.
  func add(_ subscription: RESPSubscription, _ inbox: RESPInbox) {
    let (name, id) = (subscription.name, ObjectIdentifier(inbox))
    subscriptions.withLock { subscriptions in
      switch subscription.kind {
      case .channel: subscriptions.channels[name, default: [:]][id] = inbox
      case .pattern:
        guard let pattern = subscription.pattern else { preconditionFailure("a new subscription has its pattern") }
        subscriptions.patterns[name, default: (pattern, [:])].inboxes[id] = inbox
      }
    }
  }

  /// Removes a subscription. Nothing that is published later goes to its inbox.
  func remove(_ subscription: RESPSubscription, _ inbox: RESPInbox) {
    let (name, id) = (subscription.name, ObjectIdentifier(inbox))
    subscriptions.withLock { subscriptions in
      switch subscription.kind {
      case .channel:
        subscriptions.channels[name]?[id] = nil
        if subscriptions.channels[name]?.isEmpty == true { subscriptions.channels[name] = nil }
      case .pattern:
        subscriptions.patterns[name]?.inboxes[id] = nil
        if subscriptions.patterns[name]?.inboxes.isEmpty == true { subscriptions.patterns[name] = nil }
      }
    }
  }

  // MARK: Publishing

  /// Publishes a message. O(patterns + subscribers).
  /// - Parameter store: The store that the message is about, which receivers must be allowed to read; nil if it isn't about
  ///   a store.
  /// - Returns: The number of subscriptions that it matches.
  @discardableResult
  func publish(_ payload: [UInt8], to channel: [UInt8], about store: StoreName? = nil) -> Int {
    subscriptions.withLock { subscriptions in
      var count = 0
      if let inboxes = subscriptions.channels[channel] {
        var message = RESPMessage(words: [Array("message".utf8), channel, payload], store)
        for inbox in inboxes.values { inbox.post(&message) }
        count += inboxes.count
      }
      for (name, (pattern, inboxes)) in subscriptions.patterns where unsafe channel.withUnsafeBytes(pattern.matches) {
        var message = RESPMessage(words: [Array("pmessage".utf8), name, channel, payload], store)
        for inbox in inboxes.values { inbox.post(&message) }
        count += inboxes.count
      }
      return count
    }
  }

  // MARK: Figures

  /// The channels with subscribers, sorted. Patterns don't count.
  var channels: [[UInt8]] {
    subscriptions.withLock { Array($0.channels.keys) }.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// The number of subscribers of a channel. Patterns don't count.
  func subscriberCount(of channel: [UInt8]) -> Int { subscriptions.withLock { $0.channels[channel]?.count ?? 0 } }

  /// The number of different patterns.
  var patternCount: Int { subscriptions.withLock { $0.patterns.count } }
}

/// What a client subscribes to.
struct RESPSubscription: Hashable {
  enum Kind {
    case channel
    /// All channels that match it.
    case pattern
  }

  let kind: Kind
  let name: [UInt8]
  /// The pattern; nil for a channel, and for what only stands for an equal subscription that is to be removed.
  let pattern: GlobPattern?

  /// The maximum size of the name of a channel, in bytes.
  static let maxNameSize = GlobPattern.maxSize
  /// What a subscription counts as beside its name when those of a client are limited, in bytes.
  private static let overhead = 64

  /// Creates a subscription that is to be added.
  init(_ kind: Kind, to name: RawSpan) throws(RESPFailure) {
    try Self.check(name)
    pattern = kind == .pattern ? try GlobPattern(name) : nil
    (self.kind, self.name) = (kind, name.toArray())
  }

  /// Creates what is equal to a subscription that is to be removed.
  init(_ kind: Kind, equalTo name: RawSpan) { (self.kind, self.name, pattern) = (kind, name.toArray(), nil) }

  /// Checks the size of the name of a channel, because a message is compared with all patterns.
  static func check(_ name: RawSpan) throws(RESPFailure) {
    guard name.byteCount <= maxNameSize else { throw .error("ERR a channel has at most \(maxNameSize) bytes") }
  }

  static func == (left: RESPSubscription, right: RESPSubscription) -> Bool {
    left.kind == right.kind && left.name == right.name
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(name)
  }

  /// What it counts as when the subscriptions of a client are limited, in bytes.
  var byteCount: Int { name.count + Self.overhead + (pattern?.byteCount ?? 0) }
}

/// A message in an inbox.
struct RESPPush {
  /// The message, encoded.
  let bytes: [UInt8]
  /// The store that the message is about; nil if it isn't about a store.
  let store: StoreName?
}

/// A message on its way to inboxes, encoded once for each version of the protocol.
private struct RESPMessage {
  let store: StoreName?
  private let words: [[UInt8]]
  private var encoded: [RESPVersion: [UInt8]] = [:]

  init(words: [[UInt8]], _ store: StoreName?) { (self.words, self.store) = (words, store) }

  mutating func bytes(_ version: RESPVersion) -> [UInt8] {
    if let bytes = encoded[version] { return bytes }
    var buffer = ByteBuffer()
    buffer.appendRESP(pushOf: words.count, version)
    for word in words { buffer.appendRESP(bulk: word) }
    let bytes = buffer.withSpan { $0.toArray() }
    encoded[version] = bytes
    return bytes
  }
}

/// The size of the messages in all inboxes, in bytes. A message counts once for each.
private final class UnreadMessages: Sendable {
  private let count = Atomic<Int>(0)
  /// The limits of one inbox: while all together are below theirs, and otherwise.
  private static let (limit, reducedLimit) = (32 << 20, 64 << 10)
  private static let totalLimit = 256 << 20

  func add(_ byteCount: Int) { count.add(byteCount, ordering: .relaxed) }
  func remove(_ byteCount: Int) { count.subtract(byteCount, ordering: .relaxed) }

  /// Whether an inbox may hold this many bytes.
  func permits(_ byteCount: Int) -> Bool {
    byteCount <= (count.load(ordering: .relaxed) < Self.totalLimit ? Self.limit : Self.reducedLimit)
  }
}

/// The messages for one connection, until its worker sends them. Any thread posts; the worker takes them.
final class RESPInbox: Sendable {
  private struct Contents {
    var version: RESPVersion
    var messages: [RESPPush] = []
    var byteCount = 0
    var hasOverflowed = false
  }

  private let contents: Lock<Contents>
  private let mailbox: Mailbox
  private let connection: ConnectionToken
  private let unread: UnreadMessages

  init(_ version: RESPVersion, of connection: ConnectionToken, _ mailbox: Mailbox, _ channels: RESPChannels) {
    contents = Lock(Contents(version: version))
    (self.mailbox, self.connection, unread) = (mailbox, connection, channels.unread)
  }

  deinit { unread.remove(contents.withLock { $0.byteCount }) }

  func setVersion(_ version: RESPVersion) { contents.withLock { $0.version = version } }

  /// Adds a message, and wakes the worker if the inbox was empty. A client with too many unread messages gets no more.
  fileprivate func post(_ message: inout RESPMessage) {
    let isFirst = contents.withLock { contents in
      guard !contents.hasOverflowed else { return false }
      let bytes = message.bytes(contents.version)
      if !contents.messages.isEmpty, !unread.permits(contents.byteCount + bytes.count) {
        contents.hasOverflowed = true
        unread.remove(contents.byteCount)
        (contents.messages, contents.byteCount) = ([], 0)
        return true
      }
      contents.messages.append(RESPPush(bytes: bytes, store: message.store))
      contents.byteCount += bytes.count
      unread.add(bytes.count)
      return contents.messages.count == 1
    }
    if isFirst { mailbox.post(messagesFor: connection) }
  }

  /// Removes and returns the messages; nil if there were too many unread ones.
  func take() -> [RESPPush]? {
    contents.withLock { contents in
      if contents.hasOverflowed { return nil }
      unread.remove(contents.byteCount)
      defer { (contents.messages, contents.byteCount) = ([], 0) }
      return contents.messages
    }
  }

  /// Whether there were too many unread messages, so that the client must be disconnected.
  var hasOverflowed: Bool { contents.withLock { $0.hasOverflowed } }
}
