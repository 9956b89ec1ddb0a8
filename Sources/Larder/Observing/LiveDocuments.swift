import Basics
import Documents

/// The documents that are known to match a selector, without their text. Turns what arrives from a server into changes
/// of this set.
///
/// A plain value that does no I/O and takes the time as a parameter.
struct LiveDocuments {
  typealias Instant = ContinuousClock.Instant
  typealias Change = LiveChange<Document>
  /// The bytes of a key: strings are equal if they look the same, keys are not.
  private typealias Key = [UInt8]

  private struct Known {
    let revision: UInt64
    /// Tells documents of the same key and revision apart: a store can lose its entries and count from the start.
    let hash: Int
    let expiry: Instant?
  }

  /// How long after its expiry a document is removed. A write shortly before the expiry, which keeps the document, then
  /// has time to arrive.
  private static let grace = Duration.milliseconds(200)

  private var selector: EntrySelector
  private var known: [Key: Known] = [:]
  private var expiries = DeadlineQueue<Instant, Key>()
  private var hasBegun = false

  /// - Throws: `illegalArgument` if the selector exceeds a limit or needs a text index.
  init(_ selector: Selector) throws(LarderError) {
    do throws(SelectorError) { self.selector = try EntrySelector(selector) } catch {
      throw LarderError(.illegalArgument, outcome: .rejected, "\(error)")
    }
  }

  /// When documents expire next; nil if none does.
  var nextExpiry: Instant? { expiries.first.map { $0 + Self.grace } }

  /// The number of expiries that are kept, also of documents that have been written since.
  var expiryCount: Int { expiries.count }

  // MARK: What arrives

  /// Replaces all documents by those of a snapshot.
  /// - Returns: All documents, the first time; then the differences.
  mutating func replace(by snapshot: DocumentSnapshot) -> [Change] {
    guard hasBegun else {
      hasBegun = true
      for entry in snapshot.entries { know(entry) }
      return [.initial(snapshot.entries.map(\.live))]
    }
    let keys = Set(snapshot.entries.map { Key($0.key.utf8) })
    var changes = remove(known.keys.filter { !keys.contains($0) })
    for entry in snapshot.entries {
      if let old = know(entry) {
        if old.revision != entry.revision || old.hash != entry.hash { changes.append(.updated(entry.live)) }
      } else {
        changes.append(.inserted(entry.live))
      }
    }
    return changes
  }

  /// Applies a commit that follows the snapshot.
  /// - Parameter time: When the commit arrived.
  mutating func apply(_ commit: Commit, receivedAt time: Instant) -> [Change] {
    commit.changes.flatMap { change in
      switch change {
      case .put(let entry): put(entry, receivedAt: time)
      case .delete(let key): remove([Key(key.utf8)])
      case .deleteAll: remove(Array(known.keys))
      }
    }
  }

  private mutating func put(_ entry: Entry, receivedAt time: Instant) -> [Change] {
    // The selector is this program's own, so that nothing limits what it takes.
    guard let bytes = entry.bytes,
      StoredEntry.with(
        key: entry.key.utf8.span, value: bytes.span, revision: entry.revision, { selector.matches($0) })
    else { return remove([Key(entry.key.utf8)]) }
    let document = DocumentEntry(
      key: entry.key, revision: entry.revision, text: bytes, expiry: entry.expiresIn.map { time + $0 })
    return [know(document) == nil ? .inserted(document.live) : .updated(document.live)]
  }

  /// Removes the documents that have expired.
  mutating func expire(now: Instant) -> [Change] {
    var keys: [Key] = []
    while let (deadline, key) = expiries.popFirst(through: now - Self.grace) {
      // The document may have been written since.
      if known[key]?.expiry == deadline { keys.append(key) }
    }
    return remove(keys)
  }

  // MARK: The set

  /// Adds a document.
  /// - Returns: What was known of a document with its key.
  @discardableResult
  private mutating func know(_ entry: DocumentEntry) -> Known? {
    let key = Key(entry.key.utf8)
    let old = known.updateValue(Known(revision: entry.revision, hash: entry.hash, expiry: entry.expiry), forKey: key)
    if let expiry = entry.expiry {
      expiries.insert(key, at: expiry)
      if expiries.count > 2 * known.count + 64 {
        // Most of them are of documents that have been written again.
        expiries = DeadlineQueue()
        for (key, document) in known { if let expiry = document.expiry { expiries.insert(key, at: expiry) } }
      }
    }
    return old
  }

  /// Removes those of the documents that are known.
  private mutating func remove(_ keys: [Key]) -> [Change] {
    keys.filter { known.removeValue(forKey: $0) != nil }
      .sorted { $0.lexicographicallyPrecedes($1) }
      .map { .removed(key: String(decoding: $0, as: UTF8.self)) }
  }
}

/// The documents that match a selector at one point in time.
struct DocumentSnapshot: Sendable {
  /// In the order of their keys' bytes.
  let entries: [DocumentEntry]
  /// The revision of the store. Changes that are newer are not in the snapshot.
  let revision: UInt64
}

/// A document with its expiry.
struct DocumentEntry: Sendable {
  let key: String
  let revision: UInt64
  let text: [UInt8]
  /// When the document expires; nil if it doesn't.
  let expiry: ContinuousClock.Instant?

  fileprivate var hash: Int { text.hashValue }
  fileprivate var live: LiveDocument<Document> {
    LiveDocument(key: key, revision: revision, value: Document(text, id: key, revision: revision))
  }
}
