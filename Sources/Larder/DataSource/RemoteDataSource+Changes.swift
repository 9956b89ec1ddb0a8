import DataSources

extension RemoteDataSource {
  public func changes(prefix: String) async throws -> KeyValueChanges<T> {
    var commits = store.watch(prefix: prefix).makeAsyncIterator()
    do { _ = try await commits.start() } catch {
      try await createStore(after: error)
      do { _ = try await commits.start() } catch { throw error.asDataSourceError }
    }
    let watcher = Watcher(source: self, commits)
    return KeyValueChanges(AsyncThrowingStream { try await watcher.next() })
  }

  /// Takes the commits of a watch apart.
  private actor Watcher {
    private let source: RemoteDataSource
    private var commits: RemoteStore.Watch.AsyncIterator
    /// The changes of the last commit that were not returned yet, in reverse order.
    private var changes: [Change] = []

    init(source: RemoteDataSource, _ commits: sending RemoteStore.Watch.AsyncIterator) {
      self.source = source
      self.commits = commits
    }

    func next() async throws -> KeyValueChange<T>? {
      while changes.isEmpty {
        var commits = commits
        defer { self.commits = commits }
        do {
          guard let commit = try await commits.next(isolation: self) else { return nil }
          changes = commit.changes.reversed()
        } catch {
          throw error.asDataSourceError
        }
      }
      return switch changes.removeLast() {
      case .put(let entry): .put(try source.decode(entry))
      case .delete(let key): .delete(key: key)
      case .deleteAll: .deleteAll
      }
    }
  }
}
