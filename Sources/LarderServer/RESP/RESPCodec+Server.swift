import Platform
import Storage
import Wire

/// Commands on the server.
extension RESPCodec {
  static func executeOnServer(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, _ client: RESPClient,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    switch request.command {
    case .command: try describeCommands(request, bytes, client, &replies)
    case .config: try executeConfig(request, bytes, of: &connection, client, on: &executor, into: &replies)
    case .flushall: try flushAll(request, bytes, of: &connection, on: &executor, into: &replies)
    case .function where bytes.extracting(request.word(1, bytes)).isWord("FLUSH"):
      guard request.count <= 3 else { throw .tooManyArguments(request, bytes) }
      guard RESPFlush.isValid(request, bytes, option: 2) else {
        throw .error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
      }
      replies.bytes.appendRESPOK()
    // There are none.
    case .function, .module: replies.bytes.appendRESP(arrayOf: 0)
    case .info:
      var sections: Set<String> = []
      var words = request.words(from: 1, bytes)
      while let word = words.next(bytes) { sections.insert(bytes.extracting(word).toString().lowercased()) }
      let text = RESPInfo.text(
        sections, executor.server, listener: connection.listener, grants: connection.grants, now: executor.now)
      replies.bytes.appendRESP(verbatim: text, client.version)
    case .script: try executeScript(request, bytes, executor.server.scripts, &replies)
    case .slowlog where connection.grants.onAll < .admin:
      throw .error("NOPERM this client may not see the activity of others")
    case .slowlog: try executeSlowLog(request, bytes, on: &executor, into: &replies)
    default: preconditionFailure("\(request.command) is not a command on the server")
    }
  }

  // MARK: Entries of all databases

  private static func flushAll(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    try RESPFlush.check(request, bytes)
    let (databases, stores, now) = (executor.server.databases, executor.server.stores, executor.now)
    var flushed: [Store] = []
    for name in databases.numbers.compactMap({ databases.store($0, in: stores) }) {
      guard connection.grants.right(to: name) >= .write else {
        throw .error("NOPERM this client may not write to all databases")
      }
      do throws(StorageError) { flushed.append(try stores.open(name)) } catch { throw .error("ERR \(error)") }
    }
    let start = replies.count
    replies.bytes.appendRESPOK()
    for store in flushed {
      executor.lock(store)
      defer { executor.unlockStore() }
      do throws(StorageError) { _ = unsafe try store.map.deleteAll(now: now) } catch {
        throw .detour(Detour(error, revealing: 0))
      }
      executor.server.accessControl.didEmpty(store.name, connection)
      guard let commitWriter = store.commitWriter else { continue }
      unsafe replies.require(store.map.revisions.last, commitWriter, of: 0, from: start, reveals: true)
    }
  }

  // MARK: SCRIPT

  private static func executeScript(
    _ request: RESPRequest, _ bytes: RawSpan, _ scripts: RESPScripts, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let subcommand = bytes.extracting(request.word(1, bytes))
    if subcommand.isWord("LOAD") {
      guard let loaded = scripts.load(bytes.extracting(request.word(2, bytes)).toArray()) else {
        throw RESPRun.unknownScript
      }
      replies.bytes.appendRESP(bulk: loaded.hash)
    } else if subcommand.isWord("EXISTS") {
      replies.bytes.appendRESP(arrayOf: request.count - 2)
      var hashes = request.words(from: 2, bytes)
      while let hash = hashes.next(bytes) {
        replies.bytes.appendRESP(scripts.script(bytes.extracting(hash).toString()) == nil ? 0 : 1)
      }
    } else {
      guard RESPFlush.isValid(request, bytes, option: 2) else {
        throw .error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
      }
      scripts.removeAll()
      replies.bytes.appendRESPOK()
    }
  }

  // MARK: SLOWLOG

  private static func executeSlowLog(
    _ request: RESPRequest, _ bytes: RawSpan, on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let subcommand = bytes.extracting(request.word(1, bytes))
    if subcommand.isWord("LEN") { return replies.bytes.appendRESP(executor.slowLog().count) }
    if subcommand.isWord("RESET") {
      executor.server.slowLog.withLock { $0 = SlowLog() }
      return replies.bytes.appendRESPOK()
    }
    guard request.count <= 3 else { throw .tooManyArguments(request, bytes) }
    var limit = 10
    if request.count == 3 {
      guard let number = bytes.extracting(request.word(2, bytes)).decimalNumber, number >= -1 else {
        throw .error("ERR count should be greater than or equal to -1")
      }
      limit = number == -1 ? .max : number
    }
    let time = WallClock.microseconds() / 1_000
    let records = executor.slowLog().prefix(limit)
    replies.bytes.appendRESP(arrayOf: records.count)
    for (index, record) in records.enumerated() {
      replies.bytes.appendRESP(arrayOf: 6)
      replies.bytes.appendRESP(records.count - index - 1)
      replies.bytes.appendRESP((time - Int(record.ageMilliseconds)) / 1_000)
      replies.bytes.appendRESP(Int(record.nanoseconds / 1_000))
      replies.bytes.appendRESP(arrayOf: record.operationNames.count)
      for operation in record.operationNames { replies.bytes.appendRESP(bulk: operation) }
      replies.bytes.appendRESP(bulk: "")
      replies.bytes.appendRESP(bulk: record.store)
    }
  }

  // MARK: CONFIG

  private static func executeConfig(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, _ client: RESPClient,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let subcommand = bytes.extracting(request.word(1, bytes))
    if subcommand.isWord("RESETSTAT") { return replies.bytes.appendRESPOK() }
    if subcommand.isWord("SET") {
      try setParameter(request, bytes, of: &connection, executor.server)
      return replies.bytes.appendRESPOK()
    }
    var patterns: [GlobPattern] = []
    var words = request.words(from: 2, bytes)
    while let word = words.next(bytes) {
      let pattern = bytes.extracting(word).toString().lowercased()
      patterns.append(unsafe try GlobPattern(Array(pattern.utf8).span.bytes))
    }
    let found = RESPInfo.parameters(executor.server, executor.limits).filter { name, _ in
      patterns.contains { $0.matches(name) }
    }
    replies.bytes.appendRESP(mapOf: found.count, client.version)
    for (name, value) in found {
      replies.bytes.appendRESP(bulk: name)
      replies.bytes.appendRESP(bulk: value)
    }
  }

  private static func setParameter(
    _ request: RESPRequest, _ bytes: RawSpan, of connection: inout Connection, _ server: ServerState
  ) throws(RESPFailure) {
    guard connection.grants.onAll >= .admin else { throw .error("NOPERM this client may not change parameters") }
    let name = bytes.extracting(request.word(2, bytes)).toString().lowercased()
    guard name == "notify-keyspace-events", request.count == 4 else {
      throw .error(
        "ERR CONFIG SET can change notify-keyspace-events only, and not '\(name)'; use larderd's settings")
    }
    let text = bytes.extracting(request.word(3, bytes)).toString()
    guard let classes = RESPEventClasses(text) else {
      throw .error("ERR CONFIG SET failed (possibly related to argument '\(name)') - Invalid event class character.")
    }
    server.events.change(classes, server.stores)
    let client = server.accessControl.auditClient(of: connection)
    server.accessControl.record(AuditEvent(.parameterChanged, client, object: "\(name) \(classes)"))
  }

  // MARK: COMMAND

  private static func describeCommands(
    _ request: RESPRequest, _ bytes: RawSpan, _ client: RESPClient, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let all = RESPCommand.allCases.filter { $0 != .unknown }
    guard request.count > 1 else {
      replies.bytes.appendRESP(arrayOf: all.count)
      for command in all { append(descriptionOf: command, client.version, &replies) }
      return
    }
    let subcommand = bytes.extracting(request.word(1, bytes))
    var named: [RESPCommand] = []
    var words = request.words(from: 1, bytes)
    _ = words.next(bytes)
    while let word = words.next(bytes) { named.append(RESPCommandNames.find(bytes.extracting(word)).command) }
    if subcommand.isWord("COUNT") {
      replies.bytes.appendRESP(all.count)
    } else if subcommand.isWord("INFO") {
      let listed = request.count == 2 ? all : named
      replies.bytes.appendRESP(arrayOf: listed.count)
      for command in listed {
        if command == .unknown {
          replies.bytes.appendRESPNullArray(client.version)
        } else {
          append(descriptionOf: command, client.version, &replies)
        }
      }
    } else if subcommand.isWord("DOCS") {
      let listed = request.count == 2 ? all : named.filter { $0 != .unknown }
      replies.bytes.appendRESP(mapOf: listed.count, client.version)
      for command in listed { append(documentationOf: command, client.version, &replies) }
    } else if subcommand.isWord("LIST") {
      replies.bytes.appendRESP(setOf: all.count, client.version)
      for command in all { replies.bytes.appendRESP(bulk: command.name) }
    } else {
      try appendKeys(of: named[0], request, bytes, &replies)
    }
  }

  private static func append(
    descriptionOf command: RESPCommand, _ version: RESPVersion, _ replies: inout ReplyBuffer
  ) {
    let descriptor = command.descriptor
    replies.bytes.appendRESP(arrayOf: 10)
    replies.bytes.appendRESP(bulk: command.name)
    replies.bytes.appendRESP(descriptor.arity)
    let flags = descriptor.flags.names
    replies.bytes.appendRESP(setOf: flags.count, version)
    for flag in flags {
      replies.bytes.append("+\(flag)")
      replies.bytes.appendRESPEnd()
    }
    replies.bytes.appendRESP(descriptor.keys.first)
    replies.bytes.appendRESP(descriptor.keys.last)
    replies.bytes.appendRESP(descriptor.keys.step)
    // Categories of access rules, hints, key specifications and subcommands: some clients fail on nulls here.
    replies.bytes.appendRESP(setOf: 0, version)
    for _ in 0..<3 { replies.bytes.appendRESP(arrayOf: 0) }
  }

  private static func append(
    documentationOf command: RESPCommand, _ version: RESPVersion, _ replies: inout ReplyBuffer
  ) {
    let descriptor = command.descriptor
    replies.bytes.appendRESP(bulk: command.name)
    let fields = [
      ("summary", descriptor.summary), ("since", descriptor.since), ("group", descriptor.group.rawValue),
      ("complexity", descriptor.complexity),
    ]
    replies.bytes.appendRESP(mapOf: fields.count, version)
    for (name, text) in fields {
      replies.bytes.appendRESP(bulk: name)
      replies.bytes.appendRESP(bulk: text)
    }
  }

  /// Appends the keys of a request that follows COMMAND GETKEYS.
  private static func appendKeys(
    of command: RESPCommand, _ request: RESPRequest, _ bytes: RawSpan, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    guard command != .unknown else { throw .error("ERR Invalid command specified") }
    let (descriptor, count) = (command.descriptor, request.count - 2)
    guard descriptor.keys.first > 0 else { throw .error("ERR The command has no key arguments") }
    guard RESPDescriptor.accepts(count, arity: descriptor.arity) else {
      throw .error("ERR Invalid number of arguments specified for command")
    }
    let last = descriptor.keys.last < 0 ? count + descriptor.keys.last : descriptor.keys.last
    let positions = Array(stride(from: descriptor.keys.first, through: last, by: descriptor.keys.step))
    replies.bytes.appendRESP(arrayOf: positions.count)
    for position in positions { replies.bytes.appendRESP(bulk: bytes.extracting(request.word(position + 2, bytes))) }
  }
}

extension GlobPattern {
  func matches(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { unsafe matches(UnsafeRawBufferPointer($0)) }
  }
}
