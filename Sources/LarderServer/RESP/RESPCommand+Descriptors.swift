import Wire

extension RESPCommand {
  /// The descriptor of each command. The compiler asks for one of a new command.
  var definition: RESPDescriptor {
    switch self {
    case .unknown:
      RESPDescriptor(
        0, .connection, nil, [], .none, .connection, since: "", "", "")
    case .auth:
      RESPDescriptor(
        -2, .connection, .hello, [.fast], .none, .connection, since: "1.0.0",
        "O(1)", "Authenticates the connection.",
        difference:
          "The password is an access token, and the user is `default` or the token's name. Without any tokens, it "
          + "answers as Redis does without passwords.")
    case .client:
      RESPDescriptor(
        -2, .connection, nil, [], .none, .connection, since: "2.4.0",
        "O(1)", "Tells about connections, and names this one.",
        difference: "ID, GETNAME, SETNAME, SETINFO, INFO, LIST, NO-EVICT, NO-TOUCH and HELP only.",
        subcommands: [
          RESPSubcommand("GETNAME", arity: 2),
          RESPSubcommand("ID", arity: 2),
          RESPSubcommand("INFO", arity: 2),
          RESPSubcommand("LIST", "[TYPE (NORMAL|MASTER|REPLICA|PUBSUB)] [ID <id> ...]", arity: -2),
          RESPSubcommand("NO-EVICT", "(ON|OFF)", arity: 3),
          RESPSubcommand("NO-TOUCH", "(ON|OFF)", arity: 3),
          RESPSubcommand("SETINFO", "(LIB-NAME|LIB-VER) <value>", arity: 4),
          RESPSubcommand("SETNAME", "<name>", arity: 3),
        ])
    case .echo:
      RESPDescriptor(
        2, .connection, .ping, [.fast], .none, .connection, since: "1.0.0",
        "O(1)", "Returns a message.")
    case .hello:
      RESPDescriptor(
        -1, .connection, .hello, [.fast], .none, .connection, since: "6.0.0",
        "O(1)", "Chooses the version of the protocol.")
    case .ping:
      RESPDescriptor(
        -1, .connection, .ping, [.fast], .none, .connection, since: "1.0.0",
        "O(1)", "Shows that the server lives.")
    case .quit:
      RESPDescriptor(
        -1, .connection, nil, [.fast, .controlsTransaction], .none, .connection, since: "1.0.0",
        "O(1)", "Closes the connection.")
    case .reset:
      RESPDescriptor(
        1, .connection, nil, [.fast, .controlsTransaction], .none, .connection, since: "6.2.0",
        "O(1)", "Makes the connection as new.")
    case .select:
      RESPDescriptor(
        2, .connection, .storeOpen, [.fast], .none, .connection, since: "1.0.0",
        "O(1)", "Selects a database, which is a store.",
        difference: "Not within a transaction, but for the same database.")
    case .command:
      RESPDescriptor(
        -1, .connection, nil, [], .none, .server, since: "2.8.13",
        "O(N) where N is the number of commands", "Describes the commands.",
        subcommands: [
          RESPSubcommand("COUNT", arity: 2),
          RESPSubcommand("DOCS", "[<name> ...]", arity: -2),
          RESPSubcommand("GETKEYS", "<command> [<arg> ...]", arity: -3),
          RESPSubcommand("INFO", "[<name> ...]", arity: -2),
          RESPSubcommand("LIST", arity: 2),
        ])
    case .config:
      RESPDescriptor(
        -2, .connection, nil, [.admin], .none, .server, since: "2.0.0",
        "O(N) where N is the number of parameters", "Reads parameters.",
        difference: "GET of a few parameters, SET of `notify-keyspace-events`, RESETSTAT and HELP only.",
        subcommands: [
          RESPSubcommand("GET", "<pattern> [<pattern> ...]", arity: -3),
          RESPSubcommand("RESETSTAT", arity: 2),
          RESPSubcommand("SET", "notify-keyspace-events <classes>", arity: -4),
        ])
    case .dbsize:
      RESPDescriptor(
        1, .entries, .count, [.fast, .readOnly], .none, .server, since: "1.0.0",
        "O(1)", "Returns the number of keys.")
    case .flushall:
      RESPDescriptor(
        -1, .connection, .deleteAll, [.write], .none, .server, since: "1.0.0",
        "O(N) where N is the number of keys", "Removes the keys of all databases.",
        difference: "Within a transaction only if there is one database.")
    case .flushdb:
      RESPDescriptor(
        -1, .entries, .deleteAll, [.write], .none, .server, since: "1.0.0",
        "O(N) where N is the number of keys", "Removes the keys of the database.",
        difference: "Always frees memory in the background.")
    case .function:
      RESPDescriptor(
        -2, .connection, nil, [], .none, .server, since: "7.0.0",
        "O(1)", "Manages functions. Larder has none.",
        difference: "FLUSH, LIST and HELP only.",
        subcommands: [
          RESPSubcommand("FLUSH", "[ASYNC|SYNC]", arity: -2),
          RESPSubcommand("LIST", arity: -2),
        ])
    case .info:
      RESPDescriptor(
        -1, .connection, .stats, [], .none, .server, since: "1.0.0",
        "O(1)", "Returns facts and figures about the server.",
        difference: "The fields that clients and tools read.")
    case .memory:
      RESPDescriptor(
        -2, .entries, .get, [.readOnly], .second, .server, since: "4.0.0",
        "O(1)", "Tells how much memory a key takes.",
        difference: "USAGE, DOCTOR and HELP only; an estimate.",
        subcommands: [
          RESPSubcommand("DOCTOR", arity: 2),
          RESPSubcommand("USAGE", "<key> [SAMPLES <count>]", arity: -3),
        ])
    case .module:
      RESPDescriptor(
        -2, .connection, nil, [], .none, .server, since: "4.0.0",
        "O(1)", "Lists modules. Larder has none.",
        difference: "LIST and HELP only.",
        subcommands: [
          RESPSubcommand("LIST", arity: 2)
        ])
    case .script:
      RESPDescriptor(
        -2, .connection, nil, [], .none, .server, since: "2.6.0",
        "O(N) where N is the length of the script", "Loads scripts.",
        difference: "LOAD, EXISTS, FLUSH and HELP only; the scripts of well-known locks and counters only.",
        subcommands: [
          RESPSubcommand("EXISTS", "<sha1> [<sha1> ...]", arity: -3),
          RESPSubcommand("FLUSH", "[ASYNC|SYNC]", arity: -2),
          RESPSubcommand("LOAD", "<script>", arity: 3),
        ])
    case .slowlog:
      RESPDescriptor(
        -2, .connection, .slowLog, [], .none, .server, since: "2.2.12",
        "O(N) where N is the number of entries", "Shows what took long.",
        difference: "GET, LEN, RESET and HELP only. An entry is a batch of requests: it has no arguments.",
        subcommands: [
          RESPSubcommand("GET", "[<count>]", arity: -2),
          RESPSubcommand("LEN", arity: 2),
          RESPSubcommand("RESET", arity: 2),
        ])
    case .time:
      RESPDescriptor(
        1, .connection, nil, [.fast], .none, .server, since: "2.6.0",
        "O(1)", "Returns the time of the server.")
    case .append:
      RESPDescriptor(
        3, .entries, .put, [.write, .fast, .refusedWhenFull], .one, .string, since: "2.0.0",
        "O(1)", "Appends to a value.")
    case .decr:
      RESPDescriptor(
        2, .entries, .put, [.write, .fast, .refusedWhenFull], .one, .string, since: "1.0.0",
        "O(1)", "Decrements a number.")
    case .decrby:
      RESPDescriptor(
        3, .entries, .put, [.write, .fast, .refusedWhenFull], .one, .string, since: "1.0.0",
        "O(1)", "Subtracts from a number.")
    case .delex:
      RESPDescriptor(
        -2, .entries, .delete, [.write, .fast], .one, .string, since: "8.4.0",
        "O(1)", "Deletes a key if its value compares as given.",
        difference: "IFEQ and IFNE, not their digests.")
    case .delifeq:
      RESPDescriptor(
        3, .entries, .delete, [.write, .fast], .one, .string, since: "9.0.0 (Valkey)",
        "O(1)", "Deletes a key if it has a value.")
    case .get:
      RESPDescriptor(
        2, .entries, .get, [.readOnly, .fast], .one, .string, since: "1.0.0",
        "O(1)", "Returns a value.")
    case .getdel:
      RESPDescriptor(
        2, .entries, .delete, [.write, .fast], .one, .string, since: "6.2.0",
        "O(1)", "Returns a value, and deletes its key.")
    case .getex:
      RESPDescriptor(
        -2, .entries, .put, [.write, .fast], .one, .string, since: "6.2.0",
        "O(1)", "Returns a value, and changes its expiry.")
    case .getrange:
      RESPDescriptor(
        4, .entries, .getRange, [.readOnly], .one, .string, since: "2.4.0",
        "O(N) where N is the length of the result", "Returns a part of a value.")
    case .getset:
      RESPDescriptor(
        3, .entries, .put, [.write, .fast, .refusedWhenFull], .one, .string, since: "1.0.0",
        "O(1)", "Sets a value, and returns the former one.")
    case .incr:
      RESPDescriptor(
        2, .entries, .put, [.write, .fast, .refusedWhenFull], .one, .string, since: "1.0.0",
        "O(1)", "Increments a number.")
    case .incrby:
      RESPDescriptor(
        3, .entries, .put, [.write, .fast, .refusedWhenFull], .one, .string, since: "1.0.0",
        "O(1)", "Adds to a number.")
    case .incrbyfloat:
      RESPDescriptor(
        3, .entries, .put, [.write, .fast, .refusedWhenFull], .one, .string, since: "2.6.0",
        "O(1)", "Adds to a decimal number.")
    case .mget:
      RESPDescriptor(
        -2, .entries, .getMany, [.readOnly, .fast], .all, .string, since: "1.0.0",
        "O(N) where N is the number of keys", "Returns the values of keys.")
    case .mset:
      RESPDescriptor(
        -3, .entries, .putMany, [.write, .refusedWhenFull], .pairs, .string, since: "1.0.1",
        "O(N) where N is the number of keys", "Sets the values of keys.")
    case .msetnx:
      RESPDescriptor(
        -3, .entries, .putMany, [.write, .refusedWhenFull], .pairs, .string, since: "1.0.1",
        "O(N) where N is the number of keys", "Sets the values of keys if none of these exists.")
    case .psetex:
      RESPDescriptor(
        4, .entries, .put, [.write, .refusedWhenFull], .one, .string, since: "2.6.0",
        "O(1)", "Sets a value that expires, in milliseconds.")
    case .set:
      RESPDescriptor(
        -3, .entries, .put, [.write, .refusedWhenFull], .one, .string, since: "1.0.0",
        "O(1)", "Sets a value.")
    case .setex:
      RESPDescriptor(
        4, .entries, .put, [.write, .refusedWhenFull], .one, .string, since: "2.0.0",
        "O(1)", "Sets a value that expires, in seconds.")
    case .setnx:
      RESPDescriptor(
        3, .entries, .put, [.write, .fast, .refusedWhenFull], .one, .string, since: "1.0.0",
        "O(1)", "Sets a value if the key doesn't exist.")
    case .setrange:
      RESPDescriptor(
        4, .entries, .put, [.write, .refusedWhenFull], .one, .string, since: "2.2.0",
        "O(N) where N is the length of the value", "Overwrites a part of a value.")
    case .strlen:
      RESPDescriptor(
        2, .entries, .get, [.readOnly, .fast], .one, .string, since: "2.2.0",
        "O(1)", "Returns the length of a value.")
    case .substr:
      RESPDescriptor(
        4, .entries, .getRange, [.readOnly], .one, .string, since: "1.0.0",
        "O(N) where N is the length of the result", "Returns a part of a value.")
    case .copy:
      RESPDescriptor(
        -3, .entries, .put, [.write, .refusedWhenFull], .two, .generic, since: "6.2.0",
        "O(N) where N is the length of the value", "Copies a key.",
        difference: "Within one database.")
    case .del:
      RESPDescriptor(
        -2, .entries, .deleteMany, [.write], .all, .generic, since: "1.0.0",
        "O(N) where N is the number of keys", "Deletes keys.")
    case .exists:
      RESPDescriptor(
        -2, .entries, .getMany, [.readOnly, .fast], .all, .generic, since: "1.0.0",
        "O(N) where N is the number of keys", "Counts those keys that exist.")
    case .expire:
      RESPDescriptor(
        -3, .entries, .put, [.write, .fast], .one, .generic, since: "1.0.0",
        "O(N) where N is the length of the value", "Sets when a key expires, in seconds from now.")
    case .expireat:
      RESPDescriptor(
        -3, .entries, .put, [.write, .fast], .one, .generic, since: "1.2.0",
        "O(N) where N is the length of the value", "Sets when a key expires, as a Unix time in seconds.")
    case .expiretime:
      RESPDescriptor(
        2, .entries, .get, [.readOnly, .fast], .one, .generic, since: "7.0.0",
        "O(1)", "Returns when a key expires, as a Unix time in seconds.")
    case .keys:
      RESPDescriptor(
        2, .entries, .all, [.readOnly], .none, .generic, since: "1.0.0",
        "O(N) where N is the number of keys that begin like the pattern", "Returns the keys that match a pattern.",
        difference: "Sorted. Shows the keys at several moments if there are many.")
    case .object:
      RESPDescriptor(
        -2, .entries, .get, [.readOnly], .second, .generic, since: "2.2.3",
        "O(1)", "Tells about the value of a key.",
        difference:
          "ENCODING, FREQ, REFCOUNT, IDLETIME and HELP only. The encoding is what Redis chooses for a value that is set at "
          + "once. FREQ is always an error.",
        subcommands: [
          RESPSubcommand("ENCODING", "<key>", arity: 3),
          RESPSubcommand("FREQ", "<key>", arity: 3),
          RESPSubcommand("IDLETIME", "<key>", arity: 3),
          RESPSubcommand("REFCOUNT", "<key>", arity: 3),
        ])
    case .persist:
      RESPDescriptor(
        2, .entries, .put, [.write, .fast], .one, .generic, since: "2.2.0",
        "O(N) where N is the length of the value", "Removes the expiry of a key.")
    case .pexpire:
      RESPDescriptor(
        -3, .entries, .put, [.write, .fast], .one, .generic, since: "2.6.0",
        "O(N) where N is the length of the value", "Sets when a key expires, in milliseconds from now.")
    case .pexpireat:
      RESPDescriptor(
        -3, .entries, .put, [.write, .fast], .one, .generic, since: "2.6.0",
        "O(N) where N is the length of the value", "Sets when a key expires, as a Unix time in milliseconds.")
    case .pexpiretime:
      RESPDescriptor(
        2, .entries, .get, [.readOnly, .fast], .one, .generic, since: "7.0.0",
        "O(1)", "Returns when a key expires, as a Unix time in milliseconds.")
    case .pttl:
      RESPDescriptor(
        2, .entries, .get, [.readOnly, .fast], .one, .generic, since: "2.6.0",
        "O(1)", "Returns for how long a key exists, in milliseconds.")
    case .randomkey:
      RESPDescriptor(
        1, .entries, .page, [.readOnly], .none, .generic, since: "1.0.0",
        "O(log N) where N is the number of keys", "Returns any key.")
    case .rename:
      RESPDescriptor(
        3, .entries, .put, [.write], .two, .generic, since: "1.0.0",
        "O(N) where N is the length of the value", "Renames a key.")
    case .renamenx:
      RESPDescriptor(
        3, .entries, .put, [.write, .fast], .two, .generic, since: "1.0.0",
        "O(N) where N is the length of the value", "Renames a key unless the new name exists.")
    case .scan:
      RESPDescriptor(
        -2, .entries, .page, [.readOnly], .none, .generic, since: "2.8.0",
        "O(N) where N is the number of keys that a call looks at", "Returns some of the keys, and where to go on.",
        difference: "A cursor is valid until the server ends, in its database; any other one is an error.")
    case .touch:
      RESPDescriptor(
        -2, .entries, .getMany, [.readOnly, .fast], .all, .generic, since: "3.2.1",
        "O(N) where N is the number of keys", "Counts those keys that exist, and marks them as used.")
    case .ttl:
      RESPDescriptor(
        2, .entries, .get, [.readOnly, .fast], .one, .generic, since: "1.0.0",
        "O(1)", "Returns for how long a key exists, in seconds.")
    case .type:
      RESPDescriptor(
        2, .entries, .get, [.readOnly, .fast], .one, .generic, since: "1.0.0",
        "O(1)", "Returns the type of a value.")
    case .unlink:
      RESPDescriptor(
        -2, .entries, .deleteMany, [.write, .fast], .all, .generic, since: "4.0.0",
        "O(N) where N is the number of keys", "Deletes keys.")
    case .discard:
      RESPDescriptor(
        1, .connection, nil, [.fast, .controlsTransaction], .none, .transactions, since: "2.0.0",
        "O(N) where N is the number of queued commands", "Discards a transaction.")
    case .exec:
      RESPDescriptor(
        1, .entries, .get, [.controlsTransaction], .none, .transactions, since: "1.2.0",
        "as the commands take", "Executes a transaction.",
        difference: "All changes are one commit.")
    case .multi:
      RESPDescriptor(
        1, .connection, nil, [.fast, .controlsTransaction], .none, .transactions, since: "1.2.0",
        "O(1)", "Begins a transaction.")
    case .unwatch:
      RESPDescriptor(
        1, .connection, nil, [.fast], .none, .transactions, since: "2.2.0",
        "O(1)", "Watches no key any more.")
    case .watch:
      RESPDescriptor(
        -2, .entries, .getMany, [.fast, .controlsTransaction], .all, .transactions, since: "2.2.0",
        "O(N) where N is the number of keys", "Lets the next transaction fail if a key changes.",
        difference:
          "A key that is absent again has not changed. A transaction fails if another database is selected. Watched keys "
          + "have 1 MiB at most, each counted with 64 bytes more.")
    case .psubscribe:
      RESPDescriptor(
        -2, .connection, nil, [.channels], .none, .pubsub, since: "2.0.0",
        "O(N) where N is the number of patterns", "Subscribes to the channels that match patterns.",
        difference: subscribersReadInTime)
    case .publish:
      RESPDescriptor(
        3, .connection, nil, [.channels, .fast], .none, .pubsub, since: "2.0.0",
        "O(N+M) where N is the number of subscribers and M that of patterns", "Sends a message to a channel.")
    case .pubsub:
      RESPDescriptor(
        -2, .connection, nil, [.channels], .none, .pubsub, since: "2.8.0",
        "O(N) where N is the number of channels", "Tells about channels.",
        difference: "CHANNELS, NUMPAT, NUMSUB and HELP only.",
        subcommands: [
          RESPSubcommand("CHANNELS", "[<pattern>]", arity: -2),
          RESPSubcommand("NUMPAT", arity: 2),
          RESPSubcommand("NUMSUB", "[<channel> ...]", arity: -2),
        ])
    case .punsubscribe:
      RESPDescriptor(
        -1, .connection, nil, [.channels], .none, .pubsub, since: "2.0.0",
        "O(N) where N is the number of patterns", "Ends subscriptions to channels that match patterns.")
    case .subscribe:
      RESPDescriptor(
        -2, .connection, nil, [.channels], .none, .pubsub, since: "2.0.0",
        "O(N) where N is the number of channels", "Subscribes to channels.",
        difference: subscribersReadInTime)
    case .unsubscribe:
      RESPDescriptor(
        -1, .connection, nil, [.channels], .none, .pubsub, since: "2.0.0",
        "O(N) where N is the number of channels", "Ends subscriptions to channels.")
    case .lindex:
      RESPDescriptor(
        3, .entries, .get, [.readOnly], .one, .list, since: "1.0.0",
        "O(N) where N is the number of elements before", "Returns an element of a list.",
        difference: "Lists are written by Larder's own clients.")
    case .llen:
      RESPDescriptor(
        2, .entries, .get, [.readOnly, .fast], .one, .list, since: "1.0.0",
        "O(N) where N is the number of elements", "Returns the length of a list.",
        difference: "Lists are written by Larder's own clients.")
    case .eval:
      RESPDescriptor(
        -3, .entries, .put, [.write, .refusedWhenFull], .none, .scripting, since: "2.6.0",
        "as its commands take", "Executes a script.",
        difference: "The scripts of well-known locks and counters only.")
    case .evalsha:
      RESPDescriptor(
        -3, .entries, .put, [.write, .refusedWhenFull], .none, .scripting, since: "2.6.0",
        "as its commands take", "Executes a script that was loaded.",
        difference: "The scripts of well-known locks and counters only.")
    case .lrange:
      RESPDescriptor(
        4, .entries, .get, [.readOnly], .one, .list, since: "1.0.0",
        "O(N) where N is the number of elements", "Returns elements of a list.",
        difference: "Lists are written by Larder's own clients.")
    }
  }
}

private let subscribersReadInTime =
  "A subscriber that leaves more than 32 MiB of messages unread is disconnected."

extension RESPDescriptor {
  fileprivate init(
    _ arity: Int, _ target: Target, _ operation: Operation?, _ flags: Flags, _ keys: Keys, _ group: Group,
    since: String,
    _ complexity: String, _ summary: String, difference: String? = nil, subcommands: [RESPSubcommand] = []
  ) {
    (self.arity, self.target, self.operation, self.flags) = (arity, target, operation, flags)
    (self.keys, self.group, self.since) = (keys, group, since)
    (self.complexity, self.summary, self.difference) = (complexity, summary, difference)
    self.subcommands = subcommands.isEmpty ? [] : subcommands + [RESPSubcommand("HELP", arity: 2)]
  }
}
