import Documents
import Wire

/// The indexes of a store's documents. They make finds faster and never change what is found. A server that has no
/// indexes rejects these calls with `unknownOperation`.
extension RemoteStore {
  /// Creates an index, or confirms that it exists with the same definition. The server builds it in the background;
  /// `waitForIndex(named:progress:)` waits until it is used.
  /// - Returns: Whether the index was created.
  /// - Throws: `indexExists` if there is an index of that name with another definition; `tooManyIndexes` if the store
  ///   has as many indexes as a store can have.
  @discardableResult
  public func ensureIndex(_ index: DocumentIndex) async throws(LarderError) -> Bool {
    let body = try await call(IndexEnsureRequest(index)).body
    guard let ensured = unsafe EnsuredIndex(body.span.bytes) else { throw .malformedReply }
    return ensured.isCreated
  }

  /// Creates an index, or confirms that it exists with the same definition.
  ///
  ///     let name = try await store.ensureIndex(on: ["name", .descending("age")])
  ///
  /// - Parameters:
  ///   - fields: The fields, from 1 to 32. The entries of the index have their order.
  ///   - selector: Which documents are in the index; nil for all.
  ///   - name: The name of the index; nil for one that depends on the fields and the selector only.
  /// - Returns: The name of the index.
  /// - Throws: `illegalArgument` if there can be no such index; otherwise as `ensureIndex(_:)`.
  @discardableResult
  public func ensureIndex(
    on fields: [SortField], where selector: Selector? = nil, name: String? = nil
  ) async throws(LarderError) -> String {
    let index: DocumentIndex
    do throws(DocumentIndexError) { index = try DocumentIndex(fields, where: selector, name: name) } catch {
      throw LarderError(.illegalArgument, outcome: .rejected, "\(error)")
    }
    try await ensureIndex(index)
    return index.name
  }

  /// Returns the indexes, sorted by name.
  public func indexes() async throws(LarderError) -> [IndexStatus] {
    let body = try await call(IndexListRequest()).body
    guard let json = try? JSONValue(parsing: body.span), let indexes = IndexStatus.list(json) else {
      throw .malformedReply
    }
    return indexes
  }

  /// Deletes an index, even while it is built.
  /// - Returns: Whether there was an index of that name.
  @discardableResult
  public func deleteIndex(named name: String) async throws(LarderError) -> Bool {
    do throws(LarderError) {
      _ = try await call(IndexDeleteRequest(name: name))
      return true
    } catch {
      guard error.kind == .indexUnknown else { throw error }
      return false
    }
  }

  /// Waits until an index is ready. The store's timeout applies to each question to the server; the wait has no limit
  /// but ends if the task is cancelled.
  /// - Parameter progress: Called with the index while it is built, several times a second.
  /// - Returns: The index when it is ready.
  /// - Throws: `indexUnknown` if there is no such index, or it is deleted meanwhile; `failed` if it can't be built.
  @discardableResult
  public func waitForIndex(
    named name: String, progress: @Sendable (IndexStatus) -> Void = { _ in }
  ) async throws(LarderError) -> IndexStatus {
    var pause = Duration.milliseconds(5)
    while true {
      guard let index = try await indexes().first(where: { $0.index.name == name }) else {
        throw LarderError(.indexUnknown, outcome: .rejected, "the store \(self.name) has no index \(name)")
      }
      switch index.state {
      case .ready: return index
      case .failed:
        throw LarderError(
          .failed, outcome: .rejected, "the index \(name) can't be built: \(index.failure ?? "unknown")")
      case .building: progress(index)
      }
      // If the task is cancelled, the next call throws.
      try? await Task.sleep(for: pause)
      pause = min(pause * 2, .milliseconds(200))
    }
  }
}

/// An index of a store's documents.
public struct IndexStatus: Hashable, Sendable {
  /// Whether finds can use an index. The raw values are those in JSON.
  public enum State: String, Sendable {
    /// The index is complete, and finds use it.
    case ready
    /// The index is being built. Finds don't use it yet.
    case building
    /// The index can't be built. Finds don't use it.
    case failed
  }

  /// The definition.
  public let index: DocumentIndex
  public let state: State
  /// How much of the index is built, from 0 to 1.
  public let progress: Double
  /// Why the index can't be built; nil if it can, or the reason isn't known.
  public let failure: String?
  /// The number of keys in the index. A document with an array may have several.
  public let entries: UInt64
  /// The number of documents in the index.
  public let documents: UInt64
  /// The memory that the index uses, in bytes.
  public let memoryBytes: UInt64
  /// The number of documents with too many keys, or too large ones. Each find that uses the index examines them.
  public let overflowDocuments: UInt64
  /// The fields that have an array, or several different values, in some document that isn't an overflow document.
  public let arrayFields: [FieldPath]

  /// Reads the indexes of an index-list reply, or returns nil if it is malformed.
  static func list(_ json: JSONValue) -> [IndexStatus]? {
    guard case .array(let elements) = json else { return nil }
    let indexes = elements.compactMap { IndexStatus($0) }
    return indexes.count == elements.count ? indexes : nil
  }

  private init?(_ json: JSONValue) {
    guard case .object(let members) = json, let state = members["state"]?.string.flatMap(State.init(rawValue:)) else {
      return nil
    }
    var definition = JSONObject()
    for name in ["name", "fields", "where"] where members[name] != nil { definition[name] = members[name] }
    guard let index = try? DocumentIndex(json: .object(definition)),
      let entries = Self.count(members["entries"]), let documents = Self.count(members["documents"]),
      let memoryBytes = Self.count(members["memoryBytes"]),
      let overflowDocuments = Self.count(members["overflowDocuments"]),
      case .array(let paths) = members["arrayFields"]
    else { return nil }
    let arrayFields = paths.compactMap { path in path.string.flatMap { FieldPath($0) } }
    let progress = members["progress"]?.double ?? (state == .ready ? 1 : 0)
    guard arrayFields.count == paths.count, (0...1).contains(progress) else { return nil }
    self.index = index
    self.state = state
    self.progress = progress
    failure = members["reason"]?.string
    (self.entries, self.documents, self.memoryBytes) = (entries, documents, memoryBytes)
    (self.overflowDocuments, self.arrayFields) = (overflowDocuments, arrayFields)
  }

  private static func count(_ json: JSONValue?) -> UInt64? {
    json?.integer.flatMap { UInt64(exactly: $0) }
  }
}
