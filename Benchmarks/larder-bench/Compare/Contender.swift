import Foundation

/// A server that takes part in a comparison: how it is started, and spoken to.
struct Contender: Sendable {
  let name: String
  let protocolName: TargetProtocol
  let program: String
  /// The program's arguments; `$SOCKET` stands for the socket's path, `$DATA` for a folder of the server's own.
  let arguments: [String]
  let version: String
  /// Larder's stores, which the connections use in turn.
  var stores = ["bench"]

  static let larder = "larder"
  static let echo = "echo"

  /// All that are installed, Larder and the echo first. Each gets one thread that serves, and keeps everything in memory.
  /// - Throws: when Larder or the echo is missing.
  static func installed() throws -> [Contender] {
    let redis = ["--port", "0", "--unixsocket", "$SOCKET", "--save", "", "--appendonly", "no", "--daemonize", "no"]
    // memcached refuses to run as root unless it is told to.
    let user = NSUserName() == "root" ? ["-u", "root"] : []
    let found = [
      make(larder, .larder, "larderd", ["--listen", "unix:$SOCKET", "--store", "bench=memory", "--workers", "1"]),
      make(echo, .echo, "bench-echo", ["$SOCKET"]),
      make("redis", .resp, "redis-server", redis),
      make("valkey", .resp, "valkey-server", redis),
      make("memcached", .memcached, "memcached", ["-s", "$SOCKET", "-t", "1", "-m", "2048"] + user),
    ].compactMap { $0 }
    for name in [larder, echo] where !found.contains(where: { $0.name == name }) {
      throw BenchError("\(name)'s server is not beside this program; build all with: swift build -c release")
    }
    return found
  }

  /// Larder with so many workers and stores.
  static func larder(workers: Int, stores: Int) throws -> Contender {
    let names = (1...stores).map { "bench\($0)" }
    let name = "\(workers) \(workers == 1 ? "worker" : "workers"), \(stores) \(stores == 1 ? "store" : "stores")"
    let arguments = ["--listen", "unix:$SOCKET"] + names.flatMap { ["--store", "\($0)=memory"] }
    guard
      var contender = make(name, .larder, "larderd", arguments + ["--workers", "\(workers)"])
    else { throw BenchError("there is no larderd beside this program") }
    contender.stores = names
    return contender
  }

  static func make(
    _ name: String, _ protocolName: TargetProtocol, _ program: String, _ arguments: [String]
  ) -> Contender? {
    guard let path = Programs.find(program) else { return nil }
    let version = protocolName == .echo ? "" : Programs.output(program, ["--version"]) ?? ""
    let words = version.split(whereSeparator: \.isWhitespace).prefix(3).joined(separator: " ")
    return Contender(name: name, protocolName: protocolName, program: path, arguments: arguments, version: words)
  }

  /// The command line, without folders, for whoever wants to do the same.
  var commandLine: String {
    ([URL(fileURLWithPath: program).lastPathComponent] + arguments.map { $0.isEmpty ? "''" : $0 })
      .joined(separator: " ")
  }

  var isPeer: Bool { name != Self.larder && name != Self.echo }
}
