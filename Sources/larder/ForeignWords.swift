/// Words of other databases' command lines, and those of `larder` that mean the same. Spelling wouldn't find them: `set`
/// is nearest to `get`.
enum ForeignWords {
  private static let commands: [String: String] = [
    "set": "put", "insert": "put", "add": "put", "keys": "page STORE --keys-only", "scan": "page", "list": "page",
    "ls": "stores", "databases": "stores", "tables": "stores", "del": "delete", "rm": "delete", "remove": "delete",
    "unlink": "delete", "flushall": "delete STORE --all", "flushdb": "delete STORE --all", "mget": "get-many",
    "cat": "get", "incr": "increment", "incrby": "increment", "expire": "touch", "ttl": "get-many", "query": "find",
    "select": "find", "search": "find", "aggregate": "find STORE --group-by FIELD", "patch": "update", "cp": "copy",
    "mv": "rename", "import": "load", "export": "dump", "subscribe": "watch", "monitor": "watch", "tail": "watch",
    "info": "stats", "status": "stats", "mkstore": "create", "use": "stores", "transaction": "apply", "multi": "apply",
    "version": "larder --version", "dbsize": "count", "size": "count",
  ]

  private static let options: [String: String] = [
    "--ttl": "--expire", "--ex": "--expire", "--expires": "--expire", "--expires-in": "--expire", "--px": "--expire",
    "--nx": "--if-absent", "--force": "--yes", "--filter": "--where", "--order": "--sort", "--order-by": "--sort",
    "--select": "--fields", "--project": "--fields", "--offset": "--skip", "--output": "--format", "--host": "--server",
    "--address": "--server", "--socket": "--server", "--since": "--from",
  ]

  /// Returns the command that a word means, with what it needs; nil for other words.
  static func command(meaning word: String) -> String? { commands[word.lowercased()] }

  /// Returns the option that a word means, which a command may have or not; nil for other words.
  static func option(meaning word: String) -> String? { options[String(word.prefix { $0 != "=" })] }
}
