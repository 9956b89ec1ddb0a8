extension Contender {
  static let memoryStore = "larder, memory store"
  static let directoryStore = "larder, directory store"
  static let redis = "redis"

  /// Larder with one store of an engine, as `log?durability=interval:1s`.
  /// - Throws: when there is no larderd.
  static func larder(_ name: String = larder, engine: String) throws -> Contender {
    let isDurable = !engine.hasPrefix("memory")
    let arguments = ["--listen", "unix:$SOCKET"] + (isDurable ? ["--data", "$DATA"] : [])
    guard let contender = make(name, .larder, "larderd", arguments + ["--store", "bench=\(engine)", "--workers", "1"])
    else { throw BenchError("there is no larderd beside this program") }
    return contender
  }

  /// Redis with an append-only file; nil when it is not installed.
  ///
  /// It rewrites the file only when it is told to: a rewriting takes another process, and would slow down turns at random.
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
