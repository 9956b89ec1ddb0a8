import Larder
import Metrics
import Platform

/// An observer that measures a client's calls and connections, with the names of OpenTelemetry's conventions for
/// databases where there are any.
///
///     configuration.observers = [LarderMetrics()]
///
/// | Metric | Kind | What it measures |
/// |---|---|---|
/// | `db.client.operation.duration` | timer | calls, from the call to its reply |
/// | `larder.client.operation.batch.size` | recorder | the keys or operations of calls that name several |
/// | `larder.client.request.bytes`, `larder.client.response.bytes` | counters | the bodies of requests and replies |
/// | `larder.client.retries` | counter | requests that the client has repeated by itself |
/// | `db.client.connection.pending_requests` | meter | calls in progress, also those that wait for a connection |
/// | `db.client.connection.count` | meter | open connections |
/// | `db.client.connection.create_time` | timer | connecting, including the server's hello |
/// | `larder.client.connection.failures` | counter | failed attempts to connect |
/// | `larder.client.connection.losses` | counter | lost connections |
///
/// The metrics of calls have the dimensions `db.system.name` (`larder`), `db.operation.name`, `db.namespace` (the
/// store), `server.address` and `server.port`. The duration of a call that has failed also has `error.type`, so that
/// fast failures don't improve the figures of the others. The metrics of connections have
/// `db.client.connection.pool.name`, which is the server's address; their count has `db.client.connection.state`
/// (`used`), and failures and losses have `error.type`.
public struct LarderMetrics: ClientObserver {
  private typealias Dimensions = [(String, String)]

  private struct CallKey: Hashable {
    let operation: String
    let store: String?
    let host: String
    let port: Int?
    let errorType: String?

    init(_ call: ClientCall, errorType: String? = nil) {
      operation = call.operation
      store = call.store
      host = call.connection.host
      port = call.connection.port
      self.errorType = errorType
    }

    var dimensions: Dimensions {
      var dimensions = [(Attribute.system, Attribute.larder), (Attribute.operation, operation)]
      if let store { dimensions.append((Attribute.namespace, store)) }
      dimensions.append((Attribute.host, host))
      if let port { dimensions.append((Attribute.port, "\(port)")) }
      if let errorType { dimensions.append((Attribute.errorType, errorType)) }
      return dimensions
    }
  }

  /// The metrics of the calls of one operation on one store, except their durations.
  private struct CallMetrics: Sendable {
    let batchSize: Recorder
    let requestBytes: Counter
    let responseBytes: Counter
    let retries: Counter
  }

  /// The metrics of the connections to one address.
  private struct ConnectionMetrics: Sendable {
    let pendingRequests: Meter
    let count: Meter
    let createTime: Timer
  }

  private let factory: any MetricsFactory
  private let durations = MetricCache<CallKey, Timer>()
  private let calls = MetricCache<CallKey, CallMetrics>()
  private let connections = MetricCache<String, ConnectionMetrics>()

  /// Creates an observer.
  /// - Parameter factory: What makes the metrics. The default is what the process has bootstrapped, which it must do
  ///   before.
  public init(factory: any MetricsFactory = MetricsSystem.factory) {
    self.factory = factory
  }

  // MARK: Calls

  public func callBegan(_ call: ClientCall) -> (@Sendable (ClientCallResult) -> Void)? {
    let pendingRequests = metrics(of: call.connection).pendingRequests
    pendingRequests.increment()
    return { result in
      pendingRequests.decrement()
      record(call, result)
    }
  }

  private func record(_ call: ClientCall, _ result: ClientCallResult) {
    let key = CallKey(call)
    let durationKey = result.error.map { CallKey(call, errorType: $0.type) } ?? key
    durations.metric(durationKey) {
      Timer(label: "db.client.operation.duration", dimensions: durationKey.dimensions, factory: factory)
    }
    .record(duration: result.duration)

    let metrics = calls.metric(key) { makeMetrics(key.dimensions) }
    if call.keyCount > 1 { metrics.batchSize.record(call.keyCount) }
    metrics.requestBytes.increment(by: call.requestBytes)
    metrics.responseBytes.increment(by: result.responseBytes)
    if result.retries > 0 { metrics.retries.increment(by: result.retries) }
  }

  private func makeMetrics(_ dimensions: Dimensions) -> CallMetrics {
    CallMetrics(
      batchSize: Recorder(
        label: "larder.client.operation.batch.size", dimensions: dimensions, aggregate: true, factory: factory),
      requestBytes: Counter(label: "larder.client.request.bytes", dimensions: dimensions, factory: factory),
      responseBytes: Counter(label: "larder.client.response.bytes", dimensions: dimensions, factory: factory),
      retries: Counter(label: "larder.client.retries", dimensions: dimensions, factory: factory))
  }

  // MARK: Connections

  public func connectionOpened(_ connection: ClientConnection, after duration: Duration) {
    let metrics = metrics(of: connection)
    metrics.count.increment()
    metrics.createTime.record(duration: duration)
  }

  public func connectionFailed(_ connection: ClientConnection, error: LarderError) {
    count("larder.client.connection.failures", of: connection, error)
  }

  public func connectionClosed(_ connection: ClientConnection, error: LarderError?) {
    metrics(of: connection).count.decrement()
    if let error { count("larder.client.connection.losses", of: connection, error) }
  }

  private func count(_ label: String, of connection: ClientConnection, _ error: LarderError) {
    let dimensions = Self.dimensions(of: connection) + [(Attribute.errorType, error.type)]
    Counter(label: label, dimensions: dimensions, factory: factory).increment()
  }

  private func metrics(of connection: ClientConnection) -> ConnectionMetrics {
    connections.metric(connection.address) {
      let dimensions = Self.dimensions(of: connection)
      return ConnectionMetrics(
        pendingRequests: Meter(
          label: "db.client.connection.pending_requests", dimensions: dimensions, factory: factory),
        count: Meter(
          label: "db.client.connection.count", dimensions: dimensions + [(Attribute.state, "used")], factory: factory),
        createTime: Timer(label: "db.client.connection.create_time", dimensions: dimensions, factory: factory))
    }
  }

  private static func dimensions(of connection: ClientConnection) -> Dimensions {
    [(Attribute.pool, connection.address)]
  }
}

/// Metrics that are made once, by what distinguishes them.
private final class MetricCache<Key: Hashable & Sendable, Metric: Sendable>: Sendable {
  private let metrics = Lock<[Key: Metric]>([:])

  func metric(_ key: Key, _ make: () -> Metric) -> Metric {
    metrics.withLock { metrics in
      if let metric = metrics[key] { return metric }
      let metric = make()
      metrics[key] = metric
      return metric
    }
  }
}
