import Foundation
import Platform

/// A server that takes part in a comparison: its program, arguments and protocol.
struct Contender: Sendable {
  let name: String
  let protocolName: TargetProtocol
  private let program: String
  /// The program's arguments. `$SOCKET` stands for the socket's path, `$PORT` for a TCP port, and `$DATA` for the
  /// server's data folder.
  private let arguments: [String]
  let version: String
  /// Larder's stores, over which the connections are distributed.
  var stores = ["bench"]

  static let larder = "larder"
  /// The same server with Redis's protocol.
  static let larderOverRESP = "larder over RESP"
  static let echo = "echo"

  /// Returns the installed contenders, Larder and the echo first. Each serves with one thread and keeps all data in
  /// memory.
  /// - Throws: `BenchError` if Larder or the echo is missing.
  static func installed() throws -> [Contender] {
    let redis = ["--port", "0", "--unixsocket", "$SOCKET", "--save", "", "--appendonly", "no", "--daemonize", "no"]
    // memcached runs as root only with an explicit option.
    let user = NSUserName() == "root" ? ["-u", "root"] : []
    let found = [
      make(larder, .larder, "larderd", ["--listen", "unix:$SOCKET", "--store", "bench=memory", "--workers", "1"]),
      make(echo, .echo, "bench-echo", ["$SOCKET"]),
      make(
        larderOverRESP, .resp, "larderd",
        ["--listen", "resp+unix:$SOCKET", "--store", "bench=memory", "--workers", "1"]),
      make("redis", .resp, "redis-server", redis),
      make("valkey", .resp, "valkey-server", redis),
      make("memcached", .memcached, "memcached", ["-s", "$SOCKET", "-t", "1", "-m", "2048"] + user),
    ].compactMap { $0 }
    for name in [larder, echo] where !found.contains(where: { $0.name == name }) {
      throw BenchError(
        "\(name)'s server is not in this program's folder; build everything with: swift build -c release")
    }
    return found
  }

  /// Returns Larder and its installed peers for large values, over TCP. Each serves with one thread and keeps all data in
  /// memory.
  /// - Throws: `BenchError` if larderd is missing.
  static func overTCP() throws -> [Contender] {
    let redis = ["--port", "$PORT", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]
    let peers = [make("redis", .resp, "redis-server", redis), make("valkey", .resp, "valkey-server", redis)]
    return [try larder(engine: "memory", listen: "tcp:127.0.0.1:$PORT")] + peers.compactMap(\.self)
  }

  /// Returns a Larder contender with the given numbers of workers and stores.
  static func larder(workers: Int, stores: Int) throws -> Contender {
    let names = (1...stores).map { "bench\($0)" }
    let name = "\(workers) \(workers == 1 ? "worker" : "workers"), \(stores) \(stores == 1 ? "store" : "stores")"
    let arguments = ["--listen", "unix:$SOCKET"] + names.flatMap { ["--store", "\($0)=memory"] }
    guard
      var contender = make(name, .larder, "larderd", arguments + ["--workers", "\(workers)"])
    else { throw BenchError("larderd is not in this program's folder; build it with: swift build -c release") }
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

  /// Whether the server keeps files.
  var hasData: Bool { arguments.contains { $0.contains("$DATA") } }

  /// Whether the server listens on a TCP port rather than on a Unix socket.
  var usesTCP: Bool { arguments.contains { $0.contains("$PORT") } }

  /// Sets the program and arguments of a process that is to run this server.
  func configure(_ process: Process, at address: Address, data: String) {
    process.executableURL = URL(fileURLWithPath: program)
    let (name, value) =
      switch address {
      case .unix(let path): ("$SOCKET", path)
      case .tcp(_, let port), .tls(_, let port): ("$PORT", "\(port)")
      }
    process.arguments = arguments.map {
      $0.replacingOccurrences(of: name, with: value).replacingOccurrences(of: "$DATA", with: data)
    }
  }

  /// Returns the same server, started by another program, whose arguments end with those of the server. Returns nil if
  /// that program is not installed.
  func started(by launcher: String, _ launcherArguments: [String]) -> Contender? {
    guard let path = Programs.find(launcher) else { return nil }
    return Contender(
      name: name, protocolName: protocolName, program: path, arguments: launcherArguments + [program] + arguments,
      version: version, stores: stores)
  }

  /// The command line without folders, for readers who want to repeat the measurement.
  var commandLine: String {
    ([program] + arguments)
      .map { $0.hasPrefix("/") ? URL(fileURLWithPath: $0).lastPathComponent : $0 }
      .map { $0.isEmpty || $0.contains(" ") ? "'\($0)'" : $0 }
      .joined(separator: " ")
  }

  /// A line of a list, with what a reader needs for repeating the measurement.
  var markdown: String { "- \(name)\(version.isEmpty ? "" : " (\(version))"): `\(commandLine)`" }

  var isPeer: Bool { Self.isPeer(name) }

  /// Whether a server of that name is neither Larder nor the echo.
  static func isPeer(_ name: String) -> Bool { ![larder, larderOverRESP, echo].contains(name) }
}

extension Contender {
  static let memoryStore = "larder, memory store"
  static let directoryStore = "larder, directory store"
  static let redis = "redis"
  static let syncedEcho = "receive, write, fdatasync, send"

  /// Returns the minimal durable server.
  /// - Throws: `BenchError` if its program is missing.
  static func makeSyncedEcho() throws -> Contender {
    guard let contender = make(syncedEcho, .echo, "bench-echo", ["--sync", "$DATA/file", "$SOCKET"])
    else { throw BenchError("bench-echo is not in this program's folder; build it with: swift build -c release") }
    return contender
  }

  /// Returns a Larder contender with one store of an engine such as `log?durability=interval:1s`.
  /// - Throws: `BenchError` if larderd is missing.
  static func larder(
    _ name: String = larder, engine: String, listen: String = "unix:$SOCKET"
  ) throws -> Contender {
    let isDurable = !engine.hasPrefix("memory")
    let arguments = ["--listen", listen] + (isDurable ? ["--data", "$DATA"] : [])
    guard let contender = make(name, .larder, "larderd", arguments + ["--store", "bench=\(engine)", "--workers", "1"])
    else { throw BenchError("larderd is not in this program's folder; build it with: swift build -c release") }
    return contender
  }

  /// Returns a Larder contender with stores of any engines.
  /// - Throws: `BenchError` if larderd is missing.
  static func larder(stores: [(name: String, engine: String)]) throws -> Contender {
    let arguments = ["--listen", "unix:$SOCKET", "--data", "$DATA", "--workers", "1"]
    guard
      var contender = make(
        larder, .larder, "larderd", arguments + stores.flatMap { ["--store", "\($0.name)=\($0.engine)"] })
    else { throw BenchError("larderd is not in this program's folder; build it with: swift build -c release") }
    contender.stores = stores.map(\.name)
    return contender
  }

  /// Returns a Redis contender with an append-only file, or nil if Redis is not installed.
  ///
  /// Automatic rewriting of the file is off, because the process that does it would slow down random turns.
  static func redis(fsync: String) -> Contender? {
    make(
      redis, .resp, "redis-server",
      [
        "--port", "0", "--unixsocket", "$SOCKET", "--dir", "$DATA", "--save", "", "--appendonly", "yes",
        "--appendfsync",
        fsync, "--auto-aof-rewrite-percentage", "0", "--daemonize", "no",
      ])
  }
}
