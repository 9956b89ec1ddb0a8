import Wire

/// The commands of RESP. Their descriptors are in `RESPCommand+Descriptors.swift`.
enum RESPCommand: UInt8, CaseIterable, Sendable {
  // Requests that name no command of these, or none.
  case unknown

  // Connection.
  case auth, client, echo, hello, ping, quit, reset, select

  // Server.
  case command, config, dbsize, flushall, flushdb, function, info, memory, module, script, slowlog, time

  // Strings.
  case append, decr, decrby, delex, delifeq, get, getdel, getex, getrange, getset, incr, incrby, incrbyfloat, mget, mset
  case msetnx, psetex, set, setex, setnx, setrange, strlen, substr

  // Keys.
  case copy, del, exists, expire, expireat, expiretime, keys, object, persist, pexpire, pexpireat, pexpiretime, pttl
  case randomkey, rename, renamenx, scan, touch, ttl, type, unlink

  // Transactions.
  case discard, exec, multi, unwatch, watch

  // Channels.
  case psubscribe, publish, pubsub, punsubscribe, subscribe, unsubscribe

  // Lists.
  case lindex, llen, lrange

  // Scripts.
  case eval, evalsha

  /// The name in lowercase letters.
  var name: String { "\(self)" }

  /// Whether a client may send it that has no right yet, because it has not shown its token.
  var precedesAuthentication: Bool { self == .auth || self == .hello || self == .quit }

  /// Everything about the command but what it does.
  var descriptor: RESPDescriptor { Self.descriptors[Int(rawValue)] }

  private static let descriptors = allCases.map(\.definition)
}

/// What a command of RESP is, apart from what it does: the only place that says so. `COMMAND`, the documentation and the
/// checks of requests are made of it.
struct RESPDescriptor: Sendable {
  /// What a command is about.
  enum Target: Sendable {
    /// The connection or the server. No store is locked.
    case connection
    /// The entries of the selected database, whose store is locked.
    case entries
  }

  struct Flags: OptionSet, Sendable {
    let rawValue: Int

    static let write = Flags(rawValue: 1)
    static let readOnly = Flags(rawValue: 2)
    static let fast = Flags(rawValue: 4)
    static let admin = Flags(rawValue: 8)
    /// On channels.
    static let channels = Flags(rawValue: 16)
    /// Executed at once within a transaction, instead of being queued.
    static let controlsTransaction = Flags(rawValue: 32)
    static let refusedWhenFull = Flags(rawValue: 64)

    /// The names that `COMMAND` uses.
    var names: [String] {
      var names: [String] = []
      if contains(.write) { names.append("write") }
      if contains(.readOnly) { names.append("readonly") }
      if contains(.refusedWhenFull) { names.append("denyoom") }
      if contains(.admin) { names.append("admin") }
      if contains(.channels) { names.append("pubsub") }
      if contains(.fast) { names.append("fast") }
      return names
    }
  }

  /// Which words of a request are keys.
  struct Keys: Sendable {
    let first: Int
    /// Negative from the last word.
    let last: Int
    let step: Int

    static let none = Keys(first: 0, last: 0, step: 0)
    static let one = Keys(first: 1, last: 1, step: 1)
    static let second = Keys(first: 2, last: 2, step: 1)
    static let two = Keys(first: 1, last: 2, step: 1)
    static let all = Keys(first: 1, last: -1, step: 1)
    static let pairs = Keys(first: 1, last: -1, step: 2)
  }

  enum Group: String, Sendable {
    case connection, server, string, generic, transactions, list, scripting, pubsub
  }

  /// The number of words, the name among them; the minimum as a negative number.
  let arity: Int
  let target: Target
  /// Whose right it needs, and what it counts as in metrics and in the slow log; nil if it does what no operation of
  /// Larder's own protocol does, so that it counts as another one.
  let operation: Operation?
  let flags: Flags
  let keys: Keys
  let group: Group
  /// The version of Redis that has it.
  let since: String
  let complexity: String
  let summary: String
  /// What is different from Redis; nil if nothing is.
  let difference: String?
  /// The subcommands, HELP among them; empty if the command has none.
  let subcommands: [RESPSubcommand]

  /// Whether an arity permits this many words.
  @inline(__always)
  static func accepts(_ count: Int, arity: Int) -> Bool { arity < 0 ? count >= -arity : count == arity }

  /// The lines of the reply to HELP.
  func help(_ name: String) -> [String] {
    ["\(name.uppercased()) <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
      + subcommands.map { $0.arguments.isEmpty ? $0.name : "\($0.name) \($0.arguments)" }
  }
}

/// A word after the name of a command that makes it a command of its own.
struct RESPSubcommand: Sendable {
  /// In uppercase letters.
  let name: String
  /// What follows, as HELP shows it.
  let arguments: String
  /// As that of `RESPDescriptor`.
  let arity: Int

  init(_ name: String, _ arguments: String = "", arity: Int) {
    (self.name, self.arguments, self.arity) = (name, arguments, arity)
  }
}

/// The commands by their names, without regard to case.
enum RESPCommandNames {
  /// What every request needs to know of its command.
  struct Found: BitwiseCopyable {
    let command: RESPCommand
    let operation: UInt8
    /// Whether it is on entries.
    let isOnEntries: Bool
    /// Whether it changes entries.
    let isWrite: Bool
    /// Whether it is executed at once within a transaction, instead of being queued.
    let controlsTransaction: Bool
    /// Whether it takes subcommands, which have a number of words of their own.
    private let hasSubcommands: Bool
    private let arity: Int8

    static let unknown = Found()

    private init() {
      (command, operation, arity) = (.unknown, 0, -1)
      (isOnEntries, isWrite, controlsTransaction, hasSubcommands) = (false, false, false, false)
    }

    init(_ command: RESPCommand) {
      let descriptor = command.descriptor
      (self.command, operation, arity) = (command, descriptor.operation?.rawValue ?? 0, Int8(descriptor.arity))
      isOnEntries = if case .entries = descriptor.target { true } else { false }
      isWrite = descriptor.flags.contains(.write)
      controlsTransaction = descriptor.flags.contains(.controlsTransaction)
      hasSubcommands = !descriptor.subcommands.isEmpty
    }

    /// Whether a request may have this many words; false if that depends on a subcommand.
    @inline(__always)
    func accepts(_ count: Int) -> Bool { !hasSubcommands && RESPDescriptor.accepts(count, arity: Int(arity)) }
  }

  private struct Entry {
    var name: (UInt64, UInt64) = (0, 0)
    var found = Found.unknown
  }

  private static let bits: UInt64 = 9
  private static let maxNameSize = 16
  /// A hash table with open addressing. An entry without a name is empty.
  private static let table: [Entry] = {
    var table = [Entry](repeating: Entry(), count: 1 << Int(bits))
    for command in RESPCommand.allCases where command != .unknown {
      let bytes = Array(command.name.utf8)
      let name = unsafe words(bytes.span.bytes, 0, byteCount: bytes.count)
      var index = slot(of: name)
      while table[index].name != (0, 0) { index = (index + 1) & (table.count - 1) }
      table[index] = Entry(name: name, found: Found(command))
    }
    return table
  }()

  /// Returns a name in uppercase letters, in two words.
  @inline(__always)
  private static func words(_ bytes: RawSpan, _ start: Int, byteCount: Int) -> (UInt64, UInt64) {
    guard byteCount <= 8, start &+ 8 <= bytes.byteCount else { return longWords(bytes, start, byteCount: byteCount) }
    let word = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start, as: UInt64.self)
    return (uppercased(word & (.max >> UInt64(64 &- byteCount &* 8))), 0)
  }

  @inline(never)
  private static func longWords(_ bytes: RawSpan, _ start: Int, byteCount: Int) -> (UInt64, UInt64) {
    var (low, high): (UInt64, UInt64) = (0, 0)
    for index in 0..<byteCount {
      let byte = UInt64(unsafe bytes.unsafeLoad(fromUncheckedByteOffset: start + index, as: UInt8.self))
      if index < 8 { low |= byte << UInt64(index * 8) } else { high |= byte << UInt64((index - 8) * 8) }
    }
    return (uppercased(low), uppercased(high))
  }

  /// Returns eight bytes of ASCII with lowercase letters in uppercase.
  @inline(__always)
  private static func uppercased(_ letters: UInt64) -> UInt64 {
    let each: UInt64 = 0x0101_0101_0101_0101
    let low = letters & (each &* 0x7F)
    // The highest bit of each byte is set if the letter is at least `a`, and if it is beyond `z`.
    let (isLetter, isBeyond) = (low &+ each &* (0x80 - 0x61), low &+ each &* (0x80 - 0x7B))
    return letters &- ((isLetter & ~isBeyond & ~letters & (each &* 0x80)) >> 2)
  }

  @inline(__always)
  private static func slot(of name: (UInt64, UInt64)) -> Int {
    Int(truncatingIfNeeded: ((name.0 ^ (name.1 &* 31)) &* 0x9E37_79B9_7F4A_7C15) >> (64 - bits))
  }

  /// Finds a command.
  static func find(_ name: RawSpan) -> Found { find(name, 0, byteCount: name.byteCount) }

  /// Finds the command whose name begins at `start`.
  @inline(__always)
  static func find(_ bytes: RawSpan, _ start: Int, byteCount: Int) -> Found {
    guard byteCount > 0, byteCount <= maxNameSize else { return .unknown }
    // A shorter name ends with zeros, too.
    let last = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: start &+ byteCount &- 1, as: UInt8.self)
    guard last != 0 else { return .unknown }
    let words = words(bytes, start, byteCount: byteCount)
    var index = slot(of: words)
    while table[index].name != (0, 0) {
      if table[index].name == words { return table[index].found }
      index = (index &+ 1) & (table.count &- 1)
    }
    return .unknown
  }
}
