/// An entry whose stored bytes can't be read as its value: they are damaged, were edited, or are of another type.
public struct DamagedEntry: Sendable {
  public let key: String
  /// What is wrong.
  public let error: DataSourceError
}

/// What calls for several entries do about damaged ones.
///
/// A call for a single entry that is damaged always fails with `DataSourceError.dataSerialization`, and keys are listed
/// whether their values are damaged or not.
public enum DamagedEntries: Sendable {
  /// The call fails with the error of the first damaged entry that it needs.
  case fail
  /// The call goes on as if damaged entries didn't exist, and reports each of them before it returns.
  case skip(report: @Sendable (DamagedEntry) -> Void)
}

/// The damaged entries that a call finds.
package struct DamageReport {
  private let policy: DamagedEntries
  private var found: [DamagedEntry] = []

  package init(_ policy: DamagedEntries) {
    self.policy = policy
  }

  /// Returns the result of a body; nil if it finds the entry damaged, and that is no failure.
  package mutating func reading<R>(_ key: String, _ body: () throws -> R?) throws -> R? {
    do { return try body() } catch let error as DataSourceError where isSkipped(error) {
      found.append(DamagedEntry(key: key, error: error))
      return nil
    }
  }

  /// Notes an entry; throws its error if that is a failure.
  package mutating func add(_ entry: DamagedEntry) throws {
    guard case .skip = policy else { throw entry.error }
    found.append(entry)
  }

  private func isSkipped(_ error: DataSourceError) -> Bool {
    if case .skip = policy { error.kind == .dataSerialization } else { false }
  }

  /// Reports the entries. Called without any lock.
  package func send() {
    if case .skip(let report) = policy { for entry in found { report(entry) } }
  }
}
