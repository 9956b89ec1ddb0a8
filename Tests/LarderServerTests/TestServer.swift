import Dispatch
import Foundation
import LarderServer
import Platform
import Storage
import Synchronization
import Testing

/// The tests of the server run one at a time, for many of them measure how long something takes; and on a thread of their
/// own, for they block, and the tests of other modules must not wait for that.
@Suite(.serialized, .ownThread) enum ServerTests {}

/// A server in this process, with a directory of its own for its socket.
final class TestServer: Sendable {
  let directory: String
  let server: Server
  private let stopped = DispatchSemaphore(value: 0)
  private let isStopping = Atomic(false)

  var address: Address { server.addresses[0] }
  var path: String { "\(directory)/s" }
  var hasSocketFile: Bool { FileManager.default.fileExists(atPath: path) }

  /// - Parameter stores: memory stores that exist from the start.
  init(
    workers: Int = 1, stores: [String] = ["test"], serving opened: [Store] = [], tcp: Bool = false,
    metrics: Address? = nil, rules: [AccessRule] = [], limits: (inout ServerLimits) -> Void = { _ in },
    tellRefusal: (@Sendable (RefusalLog.Event) -> Void)? = nil
  ) throws {
    directory = NSTemporaryDirectory() + "larder-\(UInt32.random(in: 0 ... .max))"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    var configuration = ServerConfiguration(
      addresses: [tcp ? .tcp(host: "127.0.0.1", port: 0) : .unix(path: "\(directory)/s")])
    configuration.workers = workers
    configuration.metrics = metrics
    configuration.stores = try stores.map { try .init(name: $0, "memory") }
    configuration.accessRules = rules
    if let tellRefusal { configuration.tellRefusal = tellRefusal }
    limits(&configuration.limits)
    server = try Server(configuration, serving: opened)
  }

  deinit {
    _ = stop()
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// A connection; with a credit its hello is done and the store open under handle 1.
  func connect(credit: UInt32 = 1 << 20, store: String = "test") throws -> TestClient {
    let client = try TestClient(address)
    try client.greet(credit: credit)
    let opened = try client.call(Request.make(.storeOpen, store: 0, id: 2, Array(store.utf8)))
    try #require(opened.outcome == .done, "\(opened)")
    return client
  }

  /// Stops the server.
  /// - Returns: how long that took, in seconds; nil when it did not end within 10 seconds. Only the first call stops.
  @discardableResult
  func stop() -> Double? {
    guard !isStopping.exchange(true, ordering: .relaxed) else { return 0 }
    let start = DispatchTime.now()
    server.stop { [stopped] in stopped.signal() }
    guard stopped.wait(timeout: start + 10) == .success else { return nil }
    return Double(DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds) / 1e9
  }
}

/// Runs `body` on threads of their own, and returns when all have ended.
/// - Returns: what each came to, in order.
func inParallel<R: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) throws -> R) throws -> [R] {
  let results = Results<R>(count)
  let group = DispatchGroup()
  for index in 0..<count {
    group.enter()
    Thread.detachNewThread {
      results.set(index, Result { try body(index) })
      group.leave()
    }
  }
  try #require(group.wait(timeout: .now() + 60) == .success, "the threads did not end")
  return try results.all()
}

private final class Results<R: Sendable>: @unchecked Sendable {  // Safe because `values` is touched under `lock` only.
  private let lock = NSLock()
  private var values: [Result<R, any Error>?]

  init(_ count: Int) { values = Array(repeating: nil, count: count) }

  func set(_ index: Int, _ value: Result<R, any Error>) { lock.withLock { values[index] = value } }

  func all() throws -> [R] { try lock.withLock { try values.map { try $0!.get() } } }
}

/// Looks again and again, for `seconds` at most, until `condition` holds.
func eventually(within seconds: Double = 5, _ condition: () throws -> Bool) rethrows -> Bool {
  let end = Date().addingTimeInterval(seconds)
  while Date() < end {
    if try condition() { return true }
    usleep(5_000)
  }
  return try condition()
}

/// How long `body` takes, in seconds.
func seconds(_ body: () throws -> Void) rethrows -> Double {
  let start = DispatchTime.now().uptimeNanoseconds
  try body()
  return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
}
