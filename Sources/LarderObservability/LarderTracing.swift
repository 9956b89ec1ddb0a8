import Larder
import Tracing

/// An observer that makes a span of each call of a client, by OpenTelemetry's conventions for databases.
///
///     configuration.observers = [LarderTracing()]
///
/// The span's parent is the task's service context. Its name is the operation's and the store's, as in `get items`, its
/// kind is `client`, and its attributes are `db.system.name` (`larder`), `db.namespace` (the store),
/// `db.operation.name`, `db.operation.batch.size` if the call names several keys, `server.address` and `server.port`;
/// `larder.retries` if the client has repeated the request; and `error.type` and `db.response.status_code` if the call
/// has failed, when the span also has the status `error` and records the error. No attribute contains keys or values.
public struct LarderTracing: ClientObserver {
  private let tracer: (any Tracer)?

  /// Creates an observer.
  /// - Parameter tracer: What makes the spans; nil for `InstrumentationSystem.tracer` at the time of each call.
  public init(tracer: (any Tracer)? = nil) {
    self.tracer = tracer
  }

  public func callBegan(_ call: ClientCall) -> (@Sendable (ClientCallResult) -> Void)? {
    let name = call.store.map { "\(call.operation) \($0)" } ?? call.operation
    let span = (tracer ?? InstrumentationSystem.tracer).startSpan(name, ofKind: .client)
    if span.isRecording { span.updateAttributes { Self.describe(call, &$0) } }
    return { result in
      if span.isRecording { Self.describe(result, span) }
      span.end()
    }
  }

  private static func describe(_ call: ClientCall, _ attributes: inout SpanAttributes) {
    attributes[Attribute.system] = Attribute.larder
    attributes[Attribute.operation] = call.operation
    if let store = call.store { attributes[Attribute.namespace] = store }
    if call.keyCount > 1 { attributes[Attribute.batchSize] = call.keyCount }
    attributes[Attribute.host] = call.connection.host
    if let port = call.connection.port { attributes[Attribute.port] = port }
  }

  private static func describe(_ result: ClientCallResult, _ span: any Span) {
    if result.retries > 0 { span.attributes[Attribute.retries] = result.retries }
    guard let error = result.error else { return }
    span.attributes[Attribute.errorType] = error.type
    span.attributes[Attribute.statusCode] = "\(error.code)"
    span.recordError(error)
    span.setStatus(SpanStatus(code: .error, message: error.message))
  }
}
