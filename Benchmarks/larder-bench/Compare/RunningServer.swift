import Foundation
import Platform
import Synchronization

/// A server process on a new Unix socket, or on a free TCP port. It is stopped when this object is released or this process is interrupted.
final class RunningServer {
  let contender: Contender
  let address: Address
  let probe: ServerUsageProbe
  /// The server's data folder; nil if it has none.
  let data: String?
  private let process = Process()
  private static let running = Mutex<Set<Int32>>([])

  /// Starts the server and waits until it accepts connections.
  init(_ contender: Contender, in folder: TemporaryFolder, data: String? = nil) throws {
    self.contender = contender
    self.data = data
    address =
      contender.usesTCP
      ? try Self.freeAddress() : .unix(path: folder.makePath("\(contender.protocolName.rawValue).sock"))
    contender.configure(process, at: address, data: data ?? folder.path)
    if let data { try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true) }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
    try Self.start(process)
    let number = process.processIdentifier
    Self.running.withLock { _ = $0.insert(number) }
    probe = try ServerUsageProbe(process: number)
    try waitUntilListening()
  }

  deinit { stop() }

  /// Starts a process with no blocked signals. It inherits the mask of this thread, and Dispatch's threads block
  /// SIGTERM.
  private static func start(_ process: Process) throws {
    var (none, before) = (sigset_t(), sigset_t())
    unsafe sigemptyset(&none)
    unsafe pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    try process.run()
  }

  private func waitUntilListening() throws {
    for _ in 0..<20_000 {
      if isListening { return }
      guard process.isRunning else { break }
      usleep(500)
    }
    throw BenchError("\(contender.name) did not start: \(contender.commandLine)")
  }

  private var isListening: Bool {
    do { _ = try SetupConnection(to: address) } catch { return false }
    return true
  }

  /// Returns an address with a TCP port that nobody listens on.
  private static func freeAddress() throws -> Address {
    let listener = try ListeningSocket.open(.tcp(host: "127.0.0.1", port: 0))
    return listener.address
  }

  /// Stops the server, with SIGKILL if it does not exit within 5 seconds.
  func stop(by signal: Int32 = SIGTERM) {
    guard process.isRunning else { return }
    let number = process.processIdentifier
    kill(number, signal)
    for _ in 0..<500 where process.isRunning { usleep(10_000) }
    if process.isRunning { kill(number, SIGKILL) }
    process.waitUntilExit()
    Self.running.withLock { _ = $0.remove(number) }
  }

  /// Kills all servers, because this process is about to exit.
  static func killAll() {
    for number in running.withLock({ $0 }) { kill(number, SIGKILL) }
  }
}
