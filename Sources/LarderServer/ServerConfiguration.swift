import Platform
import Storage

/// What a server is to do.
package struct ServerConfiguration: Sendable {
  /// A store that exists from the start.
  package struct NamedStore: Sendable {
    package let name: StoreName
    package let specification: StoreSpecification

    package init(_ name: StoreName, _ specification: StoreSpecification) {
      self.name = name
      self.specification = specification
    }

    /// - Parameter specification: `ENGINE[?option=value&…]`
    package init(name: String, _ specification: String) throws(StorageError) {
      self.init(try StoreName(name), try StoreSpecification(specification))
    }
  }

  package var addresses: [Address]
  /// Sockets that listen already, which are served too.
  package var sockets: [InheritedSocket] = []
  /// Sockets of the addresses that an earlier process opened and had kept.
  package var kept: [(address: Address, socket: InheritedSocket)] = []
  /// Has somebody keep a socket that was opened, by this name, for the next process; nil when nobody does.
  package var keep: (@Sendable (Int32, String) -> Void)?
  /// For the files of the Unix sockets among them.
  package var access = ListeningSocket.FileAccess()
  /// Whether TCP sockets may be served that other machines reach, with neither encryption nor authentication.
  package var allowsInsecureTCP = false
  /// Who may do what; with none, whoever can connect may do everything.
  package var accessRules: [AccessRule] = []
  /// Called with what clients asked for and may not do, from any thread.
  package var tellRefusal: @Sendable (RefusalLog.Event) -> Void = { _ in }
  package var stores: [NamedStore] = []
  /// The data directory, absolute; nil for a server all of whose stores are in memory.
  package var dataPath: String?
  /// Called as the opening of stores goes on, many times a second.
  package var tellProgress: @Sendable (OpeningProgress) -> Void = { _ in }
  /// Called for each store that is opened with what was found.
  package var tellOpening: @Sendable (StoreName, StoreOpening) -> Void = { _, _ in }
  /// Called once every store is open, before the first connection is taken.
  package var willServe: @Sendable () -> Void = {}
  /// Event loops; each keeps a thread while it has connections.
  package var workers = 1
  package var limits = ServerLimits()
  /// Where metrics are served over HTTP, beside `metricsSockets`; nil for nowhere.
  package var metrics: Address?
  /// Sockets that listen already, which metrics are served on.
  package var metricsSockets: [InheritedSocket] = []

  package init(addresses: [Address]) {
    self.addresses = addresses
  }
}
