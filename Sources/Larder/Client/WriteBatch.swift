import Documents

/// Operations that a store executes in one step: all of them or none. See `RemoteStore.apply(_:)`.
///
/// The conditions of all operations refer to the store as it is before the batch. The operations take effect in their
/// order: an update of an entry sees what earlier operations of the batch have made of it.
public struct WriteBatch: Equatable, Sendable {
  enum Step: Equatable, Sendable {
    case put(Write)
    case delete(String, WriteCondition)
    case update(String, DocumentUpdate, WriteCondition, creates: Bool)
    case check(String, WriteCondition)
  }

  private(set) var operations: [Step] = []

  public init() {}

  /// The number of operations.
  public var count: Int { operations.count }
  public var isEmpty: Bool { operations.isEmpty }

  // MARK: Entries

  /// Writes an entry.
  public mutating func put(_ write: Write) { operations.append(.put(write)) }

  /// Writes a single value.
  /// - Parameters:
  ///   - condition: What must be true before the batch.
  ///   - expiresIn: The time until the entry expires, to the millisecond and at least 1 ms; nil for an entry that does
  ///     not expire.
  public mutating func put(
    _ key: String, _ bytes: [UInt8], if condition: WriteCondition = .always, expiresIn: Duration? = nil
  ) {
    put(Write(key, bytes, if: condition, expiresIn: expiresIn))
  }

  /// Writes a list of elements, which may be empty.
  public mutating func put(
    _ key: String, list elements: [[UInt8]], if condition: WriteCondition = .always, expiresIn: Duration? = nil
  ) {
    put(Write(key, .list(elements), if: condition, expiresIn: expiresIn))
  }

  /// Deletes the entry of a key, if there is one.
  /// - Parameter revision: The revision that the entry must have before the batch; nil if it may have any, and may be
  ///   absent.
  public mutating func delete(_ key: String, ifRevision revision: UInt64? = nil) {
    operations.append(.delete(key, revision.map { .revision($0) } ?? .always))
  }

  // MARK: Documents

  /// Updates a document: by a merge patch, or by operators such as an increment. Its expiry stays as it is.
  ///
  ///     let increment = try DocumentUpdate(changes: [.increment("visits")])
  ///     batch.update("mike12", increment, orCreate: true)
  /// - Parameters:
  ///   - revision: The revision that the entry must have before the batch; nil for any.
  ///   - orCreate: Whether an absent key counts as the document `{}`. If it doesn't, updating it fails with `notFound`.
  public mutating func update(
    _ key: String, _ update: DocumentUpdate, ifRevision revision: UInt64? = nil, orCreate: Bool = false
  ) {
    operations.append(.update(key, update, revision.map { .revision($0) } ?? .always, creates: orCreate))
  }

  /// Merges members into a document (RFC 7396): they replace its own, and null removes one.
  /// - Parameter orCreate: As in `update(_:_:ifRevision:orCreate:)`.
  /// - Throws: `DocumentUpdateError` if the patch is not an object, or changes `_id` or `_rev`.
  public mutating func merge(
    _ patch: JSONValue, into key: String, ifRevision revision: UInt64? = nil, orCreate: Bool = false
  ) throws(DocumentUpdateError) {
    if case .object(let members) = patch, let name = members.first(where: { $0.name.utf8.first == UInt8(ascii: "$") }) {
      throw DocumentUpdateError(
        .mixedForms, at: "$.\(name.name)", "a merge patch can't have operators; use update for \(name.name)")
    }
    update(key, try DocumentUpdate(patch), ifRevision: revision, orCreate: orCreate)
  }

  /// Adds a number to a field of a document, which is 0 if it is missing.
  /// - Parameters:
  ///   - path: The field's path, as in an update.
  ///   - orCreate: As in `update(_:_:ifRevision:orCreate:)`.
  /// - Throws: `DocumentUpdateError` if the path isn't one, or the amount is not a number.
  public mutating func increment(
    _ path: String, of key: String, by amount: JSONValue = 1, ifRevision revision: UInt64? = nil,
    orCreate: Bool = false
  ) throws(DocumentUpdateError) {
    let update = try DocumentUpdate(changes: [.increment(path, by: amount)])
    self.update(key, update, ifRevision: revision, orCreate: orCreate)
  }

  // MARK: Checks

  /// Requires that the entry of a key has a revision before the batch: that it is still as it was read.
  public mutating func check(_ key: String, hasRevision revision: UInt64) {
    operations.append(.check(key, .revision(revision)))
  }

  /// Requires that a key has no entry before the batch.
  public mutating func checkAbsent(_ key: String) { operations.append(.check(key, .absent)) }
}
