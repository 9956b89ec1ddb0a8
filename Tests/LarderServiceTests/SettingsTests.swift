import Foundation
import LarderService
import Platform
import Storage
import TestSupport
import Testing

/// The configuration from files, the environment and flags.
struct SettingsTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func file(_ text: String) throws -> String {
    let url = folder.url.appending(path: "larderd.yaml")
    try text.write(to: url, atomically: true, encoding: .utf8)
    return url.path
  }

  private func problems(
    _ text: String, flags: [String: [String]] = [:], environment: [String: String] = [:]
  ) throws -> [String] {
    let path = try file(text)
    do throws(SettingsError) {
      _ = try SettingsLoader(flags: flags, environment: environment, path: path).load()
      return []
    } catch {
      return error.problems.map { $0.replacing(path, with: "FILE") }
    }
  }

  @Test func `flags override the environment, which overrides the file, which overrides the default`() throws {
    let path = try file("workers: 2\nlimits:\n  connections: 20\n  stores: 30\nlisten: [\"tcp:127.0.0.1:1\"]\n")
    let environment = ["LARDERD_LIMITS_CONNECTIONS": "21", "LARDERD_WORKERS": "3", "LARDERD_DATA": "", "PATH": "/bin"]
    let read = try SettingsLoader(flags: ["workers": ["4"]], environment: environment, path: path).load()
    let server = read.settings.server
    #expect((server.workers, server.limits.connections, server.limits.stores) == (4, 21, 30))
    #expect(server.limits.maxFrameBytes == 16 << 20 && server.dataPath == nil)
    #expect(server.addresses == [.tcp(host: "127.0.0.1", port: 1)])
    let sources = Dictionary(uniqueKeysWithValues: read.values.map { ($0.setting.key, $0.source) })
    #expect(sources["workers"] == .flag)
    #expect(sources["limits.connections"] == .environment("LARDERD_LIMITS_CONNECTIONS"))
    #expect(sources["limits.stores"] == .file(path, line: 4))
    #expect(sources["limits.frame-bytes"] == .default)
  }

  @Test func `lists come from flags, from a variable with commas, or from the file`() throws {
    let path = try file("stores:\n- a=memory\n- b=log?durability=interval:1s\ndata: /nowhere/data\n")
    func names(_ loader: SettingsLoader) throws -> [String] {
      try loader.load().settings.server.stores.map { "\($0.name)" }
    }
    #expect(try names(SettingsLoader(path: path)) == ["a", "b"])
    #expect(try names(SettingsLoader(environment: ["LARDERD_STORES": "c=memory, d=memory"], path: path)) == ["c", "d"])
    #expect(try names(SettingsLoader(flags: ["stores": ["e=memory"]], path: path)) == ["e"])
  }

  @Test func `the description is an equivalent configuration file`() throws {
    let flags = [
      "workers": ["3"], "stores": ["a=memory", "b=memory"], "socket.mode": ["660"], "data": ["/tmp/a \"b\""],
    ]
    let read = try SettingsLoader(flags: flags).load()
    let again = try SettingsLoader(path: try file(read.description)).load()
    #expect(again.values.map(\.texts) == read.values.map(\.texts))
    #expect(read.description.contains("workers: 3 ") && read.description.contains("# flag"))
  }

  @Test func `an unknown key is an error that suggests a similar one`() throws {
    #expect(
      try problems("limits:\n  conections: 5\nworkrs: 1\nfrobnicate: 2\n") == [
        "FILE, line 2: there is no setting limits.conections; did you mean limits.connections?",
        "FILE, line 3: there is no setting workrs; did you mean workers?",
        "FILE, line 4: there is no setting frobnicate",
      ])
    #expect(
      try problems("", environment: ["LARDERD_LIMIT_STORES": "1"]) == [
        "in the environment: there is no setting LARDERD_LIMIT_STORES; did you mean LARDERD_LIMITS_STORES?"
      ])
  }

  @Test(
    arguments: [
      ("workers: many", "FILE, line 1: workers: 'many' is not a whole number from 1 to 128"),
      ("workers: 0", "FILE, line 1: workers: '0' is not a whole number from 1 to 128"),
      ("workers: [1]", "FILE, line 1: workers takes one value, not a list"),
      ("workers:", "FILE, line 1: workers has no value; remove the line for the default"),
      ("listen: unix:/a", "FILE, line 1: listen takes a list, as in [a, b]"),
      (
        "listen:\n- udp:1",
        "FILE, line 2: listen, item 1: 'udp:1' is not an address: an address is unix:/path/to.sock, tcp:HOST:PORT or tls:HOST:PORT"
      ),
      ("insecure-tcp: maybe", "FILE, line 1: insecure-tcp: 'maybe' is neither true nor false"),
      ("limits: 5", "FILE, line 1: limits is a section, which contains settings, not a value"),
      (
        "limits:\n  idle-timeout: 5",
        "FILE, line 2: limits.idle-timeout: '5' is not a duration above zero, as in 500ms, 30s, 5m or 1h"
      ),
      ("socket:\n  mode: 999", "FILE, line 2: socket.mode: '999' is not an octal mode, as in 660"),
      ("socket:\n  owner: nobody-of-that-name", "FILE, line 2: socket.owner: there is no user 'nobody-of-that-name'"),
      ("log:\n  level: loud", "FILE, line 2: log.level: 'loud' is not one of error, warning, notice, info, debug"),
      (
        "metrics: 127.0.0.1:9090",
        "FILE, line 1: metrics: '127.0.0.1:9090' is not an address: an address is unix:/path/to.sock, tcp:HOST:PORT or tls:HOST:PORT; "
          + "did you mean tcp:127.0.0.1:9090?"
      ),
      ("stores:\n- a", "FILE, line 2: stores, item 1: 'a' is not NAME=ENGINE, as in sessions=memory"),
      ("stores: [a=memory,\n  [b]]", "FILE, line 1: stores item 2 is not a single value"),
      ("stores:\n- a=memory\n- a=memory", "FILE, line 3: stores, item 2: \"a\" occurs twice"),
      (
        "stores:\n- b=memory\n- a=log",
        "FILE, line 3: stores, item 2: \"a\" has a durable engine, which requires a data directory: set data"
      ),
      ("data: /dev/null", "FILE, line 1: data: \"/dev/null\" is not a folder, and links are not followed"),
      ("data: /proc/self", "FILE, line 1: data: \"/proc/self\" is not a folder, and links are not followed"),
      (
        "data: ~/larder",
        "FILE, line 1: data: '~/larder' begins with ~, which only a shell replaces; write the whole path, from / on"
      ),
      (
        "data: /usr",
        "FILE, line 1: data: \"/usr\" is not a data directory of larderd, but has \"bin\" in it; use a folder of its own"
      ),
      (
        "metrics: tcp:0.0.0.0:9090",
        "FILE, line 1: metrics: tcp:0.0.0.0:9090 can be reached from other machines, and everyone there could read the "
          + "metrics, which have the names of stores: use a loopback address, or pass --insecure-tcp if that is acceptable"
      ),
      ("listen: [unix:/a, unix:/a]", "FILE, line 1: listen, item 2: \"unix:/a\" occurs twice"),
      (
        "metrics: tcp:[::1]:1\nlisten: ['tcp:[::1]:1']",
        "FILE, line 1: metrics: \"tcp:[::1]:1\" is in listen, too; use another address"
      ),
      (
        "limits:\n  stores: 100000\n  frame-bytes: 131072",
        "FILE, line 2: limits.stores: with this limits.frame-bytes it can be at most 682, because the list of stores is "
          + "one frame"
      ),
      (
        "memory-limit: 63MiB",
        "FILE, line 1: memory-limit: '63MiB' is not a size from 64MiB to 1024GiB, as in 64MiB"
      ),
      (
        "memory-limit: 1GiB\nstores:\n- a=memory?limit=512MiB\n- b=memory?limit=1GiB",
        "FILE, line 4: stores, item 2: the limit of \"b\" must be lower than memory-limit, 1GiB"
      ),
      (
        "listen: [unix:/a, tls:127.0.0.1:7464]",
        "FILE, line 1: listen, item 2: tls:127.0.0.1:7464 needs a certificate and its private key: set tls.certificates "
          + "and tls.keys"
      ),
      (
        "tls:\n  certificates: [/a.pem, /b.pem]\n  keys: [/a-key.pem]",
        "FILE, line 2: tls.certificates: there are 2 certificates and 1 keys; each certificate needs its key, in the same "
          + "order"
      ),
      (
        "tls:\n  client-certificates: required",
        "FILE, line 2: tls.client-certificates: set tls.client-authorities to the certificates of the authorities that "
          + "issue clients' certificates"
      ),
      (
        "metrics: tls:127.0.0.1:1",
        "FILE, line 1: metrics: metrics are served without TLS; use a loopback address, as in tcp:127.0.0.1:9411"
      ),
      ("- a", "FILE: the file does not contain settings in the form KEY: VALUE"),
      ("access: ['role:a=read']", "FILE, line 1: access, item 1: there is no role 'a' in roles"),
      ("roles: [a=unix, a=tcp]", "FILE, line 1: roles, item 2: 'a' occurs twice"),
      (
        "limits: {find-time: 2m}",
        "FILE, line 1: limits.find-time: it can't be longer than limits.max-find-time"
      ),
      (
        "limits:\n  find-memory: 2",
        "FILE, line 2: limits.find-memory: '2' is not a size from 64KiB to 1024GiB, as in 64KiB"
      ),
    ])
  func `an invalid value is reported with its position`(text: String, problem: String) throws {
    #expect(try problems(text) == [problem])
  }

  @Test func `all errors in a configuration file are reported at once, from top to bottom`() throws {
    let text = """
      workers: none
      stores:
      - a=memory
      - b
      - a=memory
      - c=log
      listen:
      - tcp:127.0.0.1:1
      - tcp:0.0.0.0:1
      - nowhere
      conections: 1
      """
    let problems = try problems(text, environment: ["LARDERD_DAT": "x", "LARDERD_ACCESS": "unix=read, unix=own"])
    let positions = problems.map { $0.split(separator: ":").prefix(2).joined(separator: ":") }
    #expect(
      positions == [
        "in the environment: there is no setting LARDERD_DAT; did you mean LARDERD_DATA?",
        "environment, LARDERD_ACCESS: access, item 2", "FILE, line 1: workers", "FILE, line 4: stores, item 2",
        "FILE, line 5: stores, item 3", "FILE, line 6: stores, item 4", "FILE, line 9: listen, item 2",
        "FILE, line 10: listen, item 3",
        "FILE, line 11: there is no setting conections; did you mean limits.connections?",
      ], "\(problems)")
  }

  @Test func `a data directory is a folder of its own, new or used by a server before`() throws {
    let data = folder.url.appending(path: "data")
    let isRefused = { try !problems("data: \(data.path)").isEmpty }
    #expect(try !isRefused())
    try FileManager.default.createDirectory(at: data, withIntermediateDirectories: false)
    #expect(try !isRefused())
    let lost = data.appending(path: "lost+found")
    try FileManager.default.createDirectory(at: lost, withIntermediateDirectories: false)
    #expect(try !isRefused())
    try Data().write(to: lost.appending(path: "#12"))
    #expect(try isRefused())
    try FileManager.default.removeItem(at: lost)
    // A start that ended early has left these.
    for name in ["lock", ".new"] { try Data().write(to: data.appending(path: name)) }
    #expect(try !isRefused())
    let other = data.appending(path: "notes.txt")
    try Data().write(to: other)
    #expect(try isRefused())
    try FileManager.default.removeItem(at: other)
    try DataDirectory.open(data.path).close()
    try Data().write(to: other)
    #expect(try !isRefused())
  }

  @Test func `a store of the data directory keeps its engine and durability`() throws {
    let data = folder.url.appending(path: "data").path
    let directory = try DataDirectory.open(data)
    try directory.create(StoreDescription(name: StoreName("a"), engine: .log, durability: .none))
    #expect(try problems("data: \(data)\nstores: [a=log, b=memory]").isEmpty)
    #expect(
      try problems("data: \(data)\nstores:\n- b=log\n- a=directory") == [
        "FILE, line 4: stores, item 2: \"a\" exists with log?durability=none; write that, or drop it"
      ])
  }

  @Test(arguments: [
    ("a: [", "FILE, line 2, column 1: a value or setting is expected here"),
    ("data: b: c", "FILE, line 1, column 8: a value can't contain a colon and a space"),
    ("workers: 1\n limits: 2", "FILE, line 2, column 8: a value can't contain a colon and a space"),
    ("listen:\n\t- x", "FILE, line 2, column 1: nothing can begin with this character"),
    ("stores: [a, b\nworkers: 1", "FILE, line 2, column 8: "),
    ("data: \"x", "FILE, line 1, column 9: a quote is not closed"),
    ("workers: 1\n---\nworkers: 2", "FILE, line 2: a second document begins here; use one"),
    ("workers: 1\nworkers: 2", "FILE, line 2: workers occurs twice"),
    ("workers: &a 1", "FILE, line 1: anchors (&name) are not supported"),
    ("workers: *a", "FILE, line 1: aliases (*name) are not supported"),
    ("x: 1\n\u{1}", "FILE, line 2: there is a character that is not UTF-8 text"),
    ("a: " + String(repeating: "[", count: 100_000), "FILE, line 1: lists or sections are nested too deeply"),
  ])
  func `an error in YAML is explained with its position`(text: String, beginning: String) throws {
    let problems = try problems(text)
    #expect(problems.count == 1 && problems[0].hasPrefix(beginning), "\(problems)")
  }

  @Test func `a folder or a missing file can't be the configuration file`() {
    func problems(_ path: String) -> [String] {
      do throws(SettingsError) {
        _ = try SettingsLoader(path: path).load()
        return []
      } catch { return error.problems }
    }
    #expect(problems("/usr") == ["/usr: this is a folder; name a file"])
    #expect(problems("/nowhere/larderd.yaml") == ["/nowhere/larderd.yaml: can't be read: No such file or directory"])
    #expect(problems("/dev/zero") == ["/dev/zero: this is not a regular file; name one"])
  }

  @Test(arguments: ["? [a]: b", "a: b: c", "workers: [1, 2", "{", "- - -", "!!x y", "%YAML 9\n---\na: b"])
  func `a file that is not YAML is an error of one line`(text: String) throws {
    let problems = try problems(text)
    #expect(!problems.isEmpty && problems.allSatisfy { $0.hasPrefix("FILE") && !$0.contains("\n") }, "\(problems)")
  }

  @Test func `every size is a number of bytes, KiB, MiB or GiB`() throws {
    for unit in ["134217728", "131072KiB", "128MiB"] {
      let keys = ["frame-bytes", "output-bytes", "snapshot-memory", "find-memory", "result-memory"]
      let text = "memory-limit: \(unit)\naudit-size: \(unit)\naudit: /a\ncluster: {value-cache: \(unit)}\nlimits:\n"
      let settings = try SettingsLoader(path: file(text + keys.map { "  \($0): \(unit)\n" }.joined())).load().settings
      let limits = settings.server.limits
      #expect(
        [
          limits.maxFrameBytes, limits.maxOutputBytes, limits.maxSnapshotBytes, limits.findMemory,
          limits.maxResultBytes,
          limits.memoryLimit?.bytes, settings.replication.valueCache,
        ].allSatisfy { $0 == 128 << 20 })
      #expect(settings.audit == .file("/a", maxSize: 128 << 20))
    }
  }

  @Test func `the memory limit can be a part of what the process can have`() throws {
    func limit(_ text: String) throws -> Int? {
      try SettingsLoader(flags: ["memory-limit": [text]]).load().settings.server.limits.memoryLimit?.bytes
    }
    #expect(try limit("100%") == availableMemory() / 100 * 100)
    #expect(try #require(try limit("50%")) <= availableMemory() / 2)
    for text in ["0%", "101%", "%", "5.5%", "-1%"] { #expect(throws: SettingsError.self) { try limit(text) } }
  }

  @Test func `a file that others can change, or that may never end, is not the configuration`() throws {
    let path = try file("workers: 1\n")
    for (mode, isSafe) in [(0o644, true), (0o600, true), (0o664, false), (0o646, false)] {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
      let isRead = (try? SettingsLoader(path: path).load()) != nil
      #expect(isRead == isSafe, "\(String(mode, radix: 8))")
    }
  }

  @Test func `a reload applies what it can and names the changes that require a restart`() throws {
    let before = try SettingsLoader(path: try file("workers: 1\nlimits:\n  connections: 5\n")).load()
    let new = try SettingsLoader(path: try file("workers: 2\nlimits:\n  connections: 6\nlog:\n  level: debug\n")).load()
    let (next, changed, pending) = try before.reloaded(new)
    #expect(changed == ["log.level", "limits.connections"] && pending == ["workers"])
    #expect(next.settings.server.workers == 1 && next.settings.server.limits.connections == 6)
    // Each reload names pending changes, until a restart.
    #expect(try next.reloaded(new).pending == ["workers"])
    #expect(try next.reloaded(new).changed.isEmpty)
  }

  /// Returns the example file, with every setting uncommented if `uncommented` is true.
  private func example(uncommented: Bool) throws -> String {
    let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../../contrib/larderd.yaml")
    let text = try String(contentsOf: url, encoding: .utf8)
    return uncommented ? text.replacing(#/(?m)^( *)#(?=\S)/#) { "\($0.1)" } : text
  }

  @Test func `the example file is valid and contains only the defaults`() throws {
    let read = try SettingsLoader(path: try file(try example(uncommented: false))).load()
    #expect(read.values.allSatisfy { $0.source == .default })
  }

  @Test func `the example file contains every setting with its default`() throws {
    let path = try file(try example(uncommented: true))
    let read = try SettingsLoader(path: path).load()
    for value in read.values {
      guard case .file = value.source else {
        Issue.record("\(value.setting.key) is missing")
        continue
      }
      if !value.setting.isList, let defaultTexts = value.setting.defaultTexts {
        #expect(value.texts == defaultTexts, "\(value.setting.key)")
      }
    }
  }
}
