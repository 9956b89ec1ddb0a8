import Basics
import Glibc
import Platform
import Storage
import Wire

/// The server's facts and figures under Redis's names, for INFO, CONFIG and CLIENT.
enum RESPInfo {
  /// The version of Redis that INFO and HELLO report, because some clients refuse to work with an older one: the last one
  /// before hashes had fields that expire. `Protocol/resp.md` says which commands there are.
  static let redisVersion = "7.2.4"
  /// The version of Valkey that INFO reports, likewise: the first one with SET IFEQ.
  private static let valkeyVersion = "8.1.0"

  private struct Section {
    let name: String
    let fields: [(String, String)]
  }

  /// Returns sections of INFO.
  /// - Parameter names: Those of the sections, in lowercase; none for the usual ones.
  static func text(_ names: Set<String>, _ server: ServerState, listener: Int, grants: Grants, now: UInt64) -> String {
    let isEverything = names.isEmpty || !names.isDisjoint(with: ["all", "everything", "default"])
    let sections = sections(server, listener: listener, grants: grants, now: now).filter {
      isEverything || names.contains($0.name.lowercased())
    }
    return sections.map { section in
      "# \(section.name)\r\n" + section.fields.map { "\($0):\($1)\r\n" }.joined()
    }.joined(separator: "\r\n")
  }

  private static func sections(_ server: ServerState, listener: Int, grants: Grants, now: UInt64) -> [Section] {
    let known = grants.onAll >= .read ? server.figures() : []
    let figures = Dictionary(known.map { ($0.name, "\($0.value)") }) { first, _ in first }
    func figure(_ name: String) -> String { figures[name] ?? "0" }
    let uptime = (Int(figure("uptime_milliseconds")) ?? 0) / 1_000
    let (limits, resident) = (server.limits, figure("resident_bytes"))
    let hits = [
      ("total_connections_received", figure("connections_accepted_total")),
      ("total_commands_processed", figure("requests_total")),
      ("total_net_input_bytes", figure("received_bytes_total")),
      ("total_net_output_bytes", figure("sent_bytes_total")),
      ("rejected_connections", figure("connections_refused_total")),
      ("pubsub_channels", "\(server.channels.channels.count)"), ("pubsub_patterns", "\(server.channels.patternCount)"),
    ]
    return [
      Section(
        name: "Server",
        fields: [
          ("redis_version", redisVersion), ("valkey_version", valkeyVersion), ("server_name", "larder"),
          ("larder_version", softwareVersion),
          ("redis_mode", "standalone"), ("os", "Linux"), ("arch_bits", "64"), ("multiplexing_api", "epoll"),
          ("process_id", "\(getpid())"), ("run_id", runID), ("tcp_port", port(of: listener, server)),
          ("server_time_usec", "\(WallClock.microseconds())"), ("uptime_in_seconds", "\(uptime)"),
          ("uptime_in_days", "\(uptime / 86_400)"), ("hz", "10"), ("configured_hz", "10"),
        ]),
      Section(
        name: "Clients",
        fields: [
          ("connected_clients", figure("connections")), ("maxclients", "\(limits.connections)"),
          ("blocked_clients", "0"),
        ]),
      Section(
        name: "Memory",
        fields: [
          ("used_memory", figure("memory_bytes")), ("used_memory_human", human(figure("memory_bytes"))),
          ("used_memory_rss", resident), ("used_memory_rss_human", human(resident)), ("used_memory_peak", resident),
          ("used_memory_peak_human", human(resident)), ("maxmemory", "\(limits.memoryLimit?.bytes ?? 0)"),
          ("maxmemory_human", human("\(limits.memoryLimit?.bytes ?? 0)")), ("maxmemory_policy", "noeviction"),
          ("mem_fragmentation_ratio", "1.00"), ("mem_allocator", "larder"),
        ]),
      Section(
        name: "Persistence",
        fields: [("loading", "0"), ("rdb_bgsave_in_progress", "0"), ("aof_enabled", "0")]),
      Section(name: "Stats", fields: hits),
      Section(
        name: "Replication", fields: [("role", "master"), ("connected_slaves", "0"), ("master_repl_offset", "0")]),
      Section(name: "CPU", fields: [("used_cpu_sys", cpuSeconds.system), ("used_cpu_user", cpuSeconds.user)]),
      Section(name: "Modules", fields: []),
      Section(name: "Cluster", fields: [("cluster_enabled", "0")]),
      Section(name: "Keyspace", fields: keyspace(server, grants, now: now)),
    ]
  }

  /// Returns the port of a listener; 0 for a Unix socket.
  private static func port(of listener: Int, _ server: ServerState) -> String {
    let address = server.accessControl.policy.listeners[listener].address.description
    return address.hasPrefix("unix:") ? "0" : String(address[address.index(after: address.lastIndex(of: ":")!)...])
  }

  private static func keyspace(_ server: ServerState, _ grants: Grants, now: UInt64) -> [(String, String)] {
    server.databases.numbers.compactMap { database in
      guard let name = server.databases.store(database, in: server.stores), grants.right(to: name) >= .read,
        let store = server.stores.list().first(where: { $0.name == name })
      else { return nil }
      let contents = store.access { map in
        _ = map.expireBriefly(now: now)
        return store.visibleContents(of: map)
      }
      guard contents.entries > 0 else { return nil }
      return ("db\(database)", "keys=\(contents.entries),expires=\(contents.expiring),avg_ttl=0")
    }
  }

  /// A number of this process, in the form that clients expect.
  private static let runID = (0..<5).map { _ in
    let text = String(UInt32.random(in: .min ... .max), radix: 16)
    return String(repeating: "0", count: 8 - text.count) + text
  }.joined()

  private static var cpuSeconds: (system: String, user: String) {
    var usage = rusage()
    unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func text(_ time: timeval) -> String {
      let microseconds = "\(time.tv_usec)"
      return "\(time.tv_sec).\(String(repeating: "0", count: 6 - microseconds.count))\(microseconds)"
    }
    return (text(usage.ru_stime), text(usage.ru_utime))
  }

  private static func human(_ bytes: String) -> String {
    var value = Double(bytes) ?? 0
    for unit in ["B", "K", "M", "G"] {
      if value < 1_024 || unit == "G" { return "\((value * 100).rounded() / 100)\(unit)" }
      value /= 1_024
    }
    return bytes
  }

  /// The parameters of CONFIG GET, sorted by name.
  static func parameters(_ server: ServerState, _ limits: ServerLimits) -> [(String, String)] {
    [
      ("appendonly", "no"), ("databases", "\(server.databases.count)"), ("lfu-decay-time", "1"),
      ("maxclients", "\(limits.connections)"), ("maxmemory", "\(limits.memoryLimit?.bytes ?? 0)"),
      ("maxmemory-policy", "noeviction"), ("notify-keyspace-events", server.events.classes.description),
      ("proto-max-bulk-len", "\(limits.maxValueBytes)"), ("save", ""),
      ("slowlog-log-slower-than", "\(limits.slowThreshold.wholeMilliseconds * 1_000)"),
      ("slowlog-max-len", "\(SlowLog.capacity)"),
      ("timeout", "\(limits.idleTimeout.wholeMilliseconds / 1_000)"),
    ]
  }

  /// Returns the line of a connection in CLIENT LIST.
  /// - Parameters:
  ///   - client: The client that asks; what others have said of their libraries isn't told.
  ///   - number: That of its own connection.
  static func line(of connection: ConnectionStatistics, askedBy client: RESPClient, _ number: UInt64) -> String {
    let isOwn = connection.number == number
    let fields = [
      "id=\(connection.number)",
      "addr=\(connection.address.isEmpty ? "unix:\(connection.process)" : connection.address)",
      "laddr=", "fd=0", "name=\(connection.client)", "age=\(connection.openMilliseconds / 1_000)", "idle=0", "flags=N",
      "db=\(isOwn ? client.database : 0)", "sub=\(isOwn ? client.subscriptions(.channel).count : 0)",
      "psub=\(isOwn ? client.subscriptions(.pattern).count : 0)", "ssub=0", "multi=-1", "watch=0", "qbuf=0",
      "qbuf-free=0", "argv-mem=0", "multi-mem=0", "rbs=0", "rbp=0", "obl=0", "oll=0", "omem=0", "tot-mem=0", "events=r",
      "redir=-1", "tot-net-in=\(connection.receivedBytes)",
      "tot-net-out=\(connection.sentBytes)", "tot-cmds=\(connection.requests)", "cmd=\(isOwn ? "client" : "NULL")",
      "user=default", "resp=\(client.version.rawValue)", "lib-name=\(isOwn ? client.libraryName : "")",
      "lib-ver=\(isOwn ? client.libraryVersion : "")",
    ]
    return fields.joined(separator: " ") + "\n"
  }
}
