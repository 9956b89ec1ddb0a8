import Dispatch
import Glibc
import Platform
import Synchronization
import Wire

/// A server that can do what a real one never does: be silent, talk nonsense, cut replies off, hang up. Its one store is a dictionary.
final class FakeServer: Sendable {
  /// What the server does about a request instead of answering it.
  enum Reaction: Sendable {
    case answer
    case silence
    /// Sends these bytes, and goes on.
    case send([UInt8])
    /// Sends these bytes, and hangs up.
    case hangUp([UInt8])
  }

  struct Request: Sendable {
    let operation: Wire.Operation
    let store: UInt16
    let id: UInt32
    let body: [UInt8]
    /// Which request of its operation this is, from 1, on all connections.
    let count: Int
  }

  typealias Script = @Sendable (Request) -> Reaction

  struct Shared {
    var entries: [String: (revision: UInt64, value: [UInt8])] = [:]
    var revision: UInt64 = 0
    var counts: [Wire.Operation: Int] = [:]
    var script: Script?
    var handle: UInt16 = 7
    var maxInFlight = 0
    var framesSent = 0
    var connections = 0
    var isStopped = false
  }

  let path: String
  let shared = Lock(Shared())
  let hello: ServerHello
  private static let numbers = Atomic<Int>(0)

  var address: String { "unix:\(path)" }

  /// A path that nobody listens on yet.
  static func freshPath() -> String {
    "/tmp/larder-test-\(getpid())-\(numbers.wrappingAdd(1, ordering: .relaxed).newValue).sock"
  }

  init(path: String = FakeServer.freshPath(), inFlight: UInt32 = 1_000, _ script: Script? = nil) throws {
    self.path = path
    hello = ServerHello(
      maxFrameSize: 1 << 20, maxValueSize: 1 << 19, maxKeySize: 4_096, maxOpenStores: 16,
      maxRequestsInFlight: inFlight,
      maxKeyCount: 1_000, name: "fake")
    shared.withLock { $0.script = script }
    let listener = try ListeningSocket.open(.unix(path: path))
    let queue = DispatchQueue(label: "fake.listener")
    let box = Box(listener)
    queue.async { self.listen(box) }
  }

  deinit { stop() }

  func stop() { shared.withLock { $0.isStopped = true } }

  var isStopped: Bool { shared.withLock { $0.isStopped } }

  func count(of operation: Wire.Operation) -> Int { shared.withLock { $0.counts[operation] ?? 0 } }

  func set(_ script: Script?) { shared.withLock { $0.script = script } }

  func put(_ key: String, _ value: [UInt8]) {
    shared.withLock { shared in
      shared.revision += 1
      shared.entries[key] = (shared.revision, value)
    }
  }

  private final class Box: Sendable {
    let listener: ListeningSocket
    init(_ listener: consuming ListeningSocket) { self.listener = listener }
  }

  private func listen(_ box: Box) {
    while !isStopped {
      guard Self.wait(box.listener.descriptor.number) else { continue }
      guard let socket = try? box.listener.accept() else { continue }
      let connection = FakeConnection(self, socket)
      shared.withLock { $0.connections += 1 }
      DispatchQueue(label: "fake.connection").async { connection.serve() }
    }
  }

  /// Whether there is something to read within 5 ms.
  static func wait(_ number: Int32) -> Bool {
    var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&entry, 1, 5) > 0
  }
}
