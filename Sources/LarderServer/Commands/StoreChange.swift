import Documents
import Storage
import Wire

/// A request that creates or drops a store or an index, which takes the disk some time.
///
/// Made by a worker. Safe because only the thread that runs it uses what changes, until it posts the end of the pause to
/// the worker, and only the worker does after that.
final class StoreChange: @unchecked Sendable {
  enum Action {
    case create(StoreName, StoreSpecification)
    case drop(StoreName)
    /// Hands a store over to another server.
    case move(StoreName, to: String)
    case ensureIndex(DocumentIndex, of: StoreName)
    case deleteIndex(String, of: StoreName)
  }

  /// The tag of the request.
  let tag: UInt32
  let request: PendingRequest
  private let action: Action
  /// Set when it has been run.
  private(set) var outcome = LateOutcome.done

  init(_ action: Action, tag: UInt32, _ request: PendingRequest) {
    self.action = action
    self.tag = tag
    self.request = request
  }

  /// Whether it removes a store.
  var isRemoval: Bool {
    switch action {
    case .drop, .move: true
    case .create, .ensureIndex, .deleteIndex: false
    }
  }

  /// The event of the change that was run, for the audit; nil if there was nothing to do.
  func auditEvent(_ client: AuditClient) -> AuditEvent? {
    let reason: String? = if case .failure(let failure) = outcome { failure.message } else { nil }
    switch action {
    case .create(let name, let specification):
      return AuditEvent(.storeCreated, client, store: name.text, object: "\(specification)", reason: reason)
    case .drop(let name): return AuditEvent(.storeDropped, client, store: name.text, reason: reason)
    case .move(let name, let node):
      return AuditEvent(.storeMoved, client, store: name.text, object: node, reason: reason)
    case .ensureIndex(let index, let store):
      if case .ensured(let ensured) = outcome, !ensured.isCreated { return nil }
      return AuditEvent(.indexCreated, client, store: store.text, object: index.name, reason: reason)
    case .deleteIndex(let name, let store):
      return AuditEvent(.indexDeleted, client, store: store.text, object: name, reason: reason)
    }
  }

  /// Changes the stores. Waits for the disk, and for other changes.
  /// - Parameter shared: The stores that the server shares with others.
  func run(_ stores: StoreCatalog, sharing shared: (any SharedStores)?) {
    do throws(StorageError) { outcome = try change(stores, shared) } catch { outcome = .failure(CommandFailure(error)) }
  }

  private func change(
    _ stores: StoreCatalog, _ shared: (any SharedStores)?
  ) throws(StorageError) -> LateOutcome {
    switch action {
    case .create(let name, let specification): try stores.create(name, specification)
    case .drop(let name): try stores.drop(name)
    case .move(let name, let node):
      guard let shared else { throw .invalidOption("this server shares no stores with others; set databases") }
      try stores.move(name, to: node, by: shared)
    case .ensureIndex(let index, let store):
      let isCreated = try stores.ensureIndex(index, of: store)
      return .ensured(EnsuredIndex(name: index.name, isCreated: isCreated))
    case .deleteIndex(let name, let store): try stores.deleteIndex(named: name, of: store)
    }
    return .done
  }
}
