import Foundation
import LarderServer
import Platform
import TestSupport
import Testing

@testable import Larder

/// Runs `body` with a server in this process, on a Unix socket of its own, and with a client of it.
func withServer(
  _ configure: (inout ServerConfiguration) -> Void = { _ in },
  _ body: (LarderClient, Server) async throws -> Void
) async throws {
  let folder = try TemporaryFolder()
  var configuration = ServerConfiguration(addresses: [try Address("unix:\(folder.path)/larder.sock")])
  configuration.stores = [try .init(name: "items", "memory")]
  configure(&configuration)
  let server = try Server(configuration)
  let client = try LarderClient("\(server.addresses[0])")
  let result: Result<Void, any Error>
  do { result = .success(try await body(client, server)) } catch { result = .failure(error) }
  await client.shutdown()
  await withCheckedContinuation { continuation in server.stop { continuation.resume() } }
  try result.get()
}

/// A `larderd` of this build in a process of its own.
final class ServerProcess {
  private let process = Process()

  convenience init(address: String, store: String) throws {
    try self.init(address: address, options: ["--store", "\(store)=memory"])
  }

  init(address: String, options: [String]) throws {
    process.executableURL = try ProjectFiles.executable("larderd")
    process.arguments = ["--listen", address] + options
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  deinit { if process.isRunning { process.terminate() } }

  func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

  /// Sends a signal, and waits for the end of the process.
  /// - Returns: The exit status, or the number of the signal that ended the process.
  func end(with signal: Int32) -> Int32 {
    kill(process.processIdentifier, signal)
    process.waitUntilExit()
    return process.terminationStatus
  }
}

/// Cuts the connections of this process to a Unix socket, as a failing network would.
func cutConnections(to path: String) {
  for descriptor: Int32 in 3..<1_024 {
    var address = sockaddr_un()
    var size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let status = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(descriptor, $0, &size) }
    }
    guard status == 0, address.sun_family == sa_family_t(AF_UNIX) else { continue }
    let name = unsafe withUnsafeBytes(of: &address.sun_path) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    if name == path { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
  }
}

/// Waits until a condition holds, and records a problem if it doesn't for 30 seconds or more.
func eventually(_ problem: String, _ condition: () async throws -> Bool) async throws {
  for _ in 0..<15_000 {
    if try await condition() { return }
    try await Task.sleep(for: .milliseconds(2))
  }
  Issue.record("\(problem)")
}
