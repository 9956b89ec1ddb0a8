import Foundation
import Larder
import Testing

@Suite struct `Backing up and restoring` {
  private static let odd = [
    #"{"key":"binary","valueBase64":"AP/+gGA="}"#, #"{"key":"blank","value":""}"#,
    #"{"key":"line\n\"é","value":"nul \u0000"}"#, #"{"key":"list","values":["text","",{"a": 1}]}"#,
    #"{"key":"list of bytes","valuesBase64":["","/w=="]}"#, #"{"key":"no list","values":[]}"#,
  ]

  private let folder = try! TemporaryFolder()
  private var file: String { folder.file("a.backup").path }

  /// Returns a dump without its revisions.
  private func dump(_ server: RunningServer, _ store: String) throws -> String {
    try server.larder("dump", store).text.replacing(try Regex(#","revision":\d+"#), with: "")
  }

  /// Returns the line that a backup prints.
  private func revision(_ server: RunningServer, _ store: String) throws -> String {
    let statistics = try server.larder("stats", store).text
    return try "\(#require(statistics.firstMatch(of: Regex(#""revision":(\d+)"#))?[1].substring))\n"
  }

  private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path) }

  @Test func `a restored store has the same bytes, through a file and through a pipe`() throws {
    let server = try RunningServer()
    _ = try server.larder("load", "items", "-", input: Self.odd.joined(separator: "\n"))
    _ = try server.larder(["put", "items", "large"], input: [UInt8](repeating: 0xFE, count: 3_000_000))
    let backup = try server.larder("backup", "items", file)
    #expect(try backup.status == 0 && backup.text == revision(server, "items") && backup.error.isEmpty)
    #expect(try names() == ["a.backup"])
    let restored = try server.larder("restore", "copy", file)
    #expect(restored.status == 0 && restored.output.isEmpty && restored.error.isEmpty)
    #expect(try server.shell("larder backup items - | larder restore piped - --engine memory").status == 0)
    #expect(try dump(server, "items").contains(#""valuesBase64":["","/w=="]"#))
    for copy in ["copy", "piped"] { #expect(try dump(server, copy) == dump(server, "items")) }
    #expect(try server.larder("stores").lines.allSatisfy { $0.contains(#""engine":"memory""#) })
  }

  @Test func `an interrupted restore says how to go on`() throws {
    let server = try RunningServer()
    let run = try server.shell(
      """
      cd "$TMPDIR"
      seq 1 50000 | sed 's/.*/{"key":"&","value":&}/' | larder load items -
      larder backup items backup > revision
      mkfifo pipe
      larder restore copy - <pipe 2>error &
      exec 3>pipe
      head -c 600000 backup >&3
      until (($(larder count copy 2>/dev/null || echo 0) > 0)); do sleep 0.02; done
      kill -TERM $!
      wait $!
      echo $?
      cat error >&2
      done=$(grep -oE '[0-9]+$' error)
      [[ $(larder count copy) == "$done" ]] && echo all of them
      larder restore copy backup 2>/dev/null || echo $?
      larder restore copy backup --resume "$done" && larder count copy
      larder restore other backup --resume 1 2>/dev/null || echo $?
      larder create empty memory && larder restore empty backup --resume 1 2>/dev/null || echo $?
      """)
    #expect(run.lines == ["4", "all of them", "3", "50000", "3", "3"])
    #expect(run.error.hasPrefix("larder: interrupted; all entries up to "), "\(run.error)")
  }

  @Test func `the engine and its option are restored, unless another engine is given`() throws {
    let server = try RunningServer(data: folder.file("data"), stores: [])
    #expect(try server.larder("create", "orders", "log?durability=interval:250ms").status == 0)
    #expect(try server.larder("create", "bad", "log?durability=never").status == 3)
    _ = try server.larder("put", "orders", "a", "1")
    _ = try server.larder("backup", "orders", file)
    _ = try server.larder("restore", "same", file)
    _ = try server.larder("restore", "other", file, "--engine", "directory")
    #expect(try server.larder("create", "cache", "memory?limit=2048KiB").status == 0)
    _ = try server.shell("larder backup cache - | larder restore again -")
    #expect(
      try server.larder("stores").lines == [
        #"{"name":"again","engine":"memory","limit":"2MiB","entries":0}"#,
        #"{"name":"cache","engine":"memory","limit":"2MiB","entries":0}"#,
        #"{"name":"orders","engine":"log","durability":"interval:250ms","entries":1}"#,
        #"{"name":"other","engine":"directory","durability":"always","entries":1}"#,
        #"{"name":"same","engine":"log","durability":"interval:250ms","entries":1}"#,
      ])
    let statistics = try server.larder("stats", "other").text
    for name in ["directory_files", "directory_journal_bytes", "durable_revision", "read_only"] {
      #expect(statistics.contains("\"\(name)\":"))
    }
  }

  @Test func `expired entries are not restored, and the others keep their expiry`() throws {
    let server = try RunningServer()
    _ = try server.larder("put", "items", "long", "2", "--expire", "1h")
    _ = try server.larder("put", "items", "ever", "3")
    _ = try server.larder("put", "items", "short", "1", "--expire", "2s")
    #expect(try server.larder("backup", "items", file).status == 0)
    #expect(try server.larder("verify", file).text.contains(#""entries":3"#))
    usleep(2_000_000)
    #expect(try server.larder("restore", "copy", file).status == 0)
    let lines = try server.larder("dump", "copy").lines
    #expect(lines.count == 2 && !lines[0].contains("expires"))
    let left = try #require(
      lines[1].firstMatch(of: try Regex(#""expiresInMilliseconds":(\d+),"expiresAtMilliseconds":\d+}"#))?[1].substring
        .flatMap { Int($0) })
    #expect((3_500_000..<3_600_000).contains(left))
  }

  @Test func `a store with entries accepts a backup only with --merge`() throws {
    let server = try RunningServer()
    for (key, value) in [("a", "old"), ("b", "old")] { _ = try server.larder("put", "items", key, value) }
    _ = try server.larder("backup", "items", file)
    for (key, value) in [("b", "new"), ("c", "new")] { _ = try server.larder("put", "items", key, value) }
    let refused = try server.larder("restore", "items", file)
    #expect(refused.status == 3 && refused.error.contains("--merge"))
    #expect(try server.larder("restore", "items", file, "--merge", "--engine", "log").status == 3)
    #expect(try server.larder("get", "items", "b").text == "new")
    #expect(try server.larder("restore", "items", file, "--merge").status == 0)
    #expect(try ["a", "b", "c"].map { try server.larder("get", "items", $0).text } == ["old", "old", "new"])
    // No revision is used again.
    let revisions = try server.larder("dump", "items").lines.compactMap { line in
      line.firstMatch(of: try! Regex(#""revision":(\d+)"#))?[1].substring.flatMap { Int($0) }
    }
    #expect(revisions[0] > 4 && revisions[1] > 4 && revisions[2] == 4)
  }

  @Test func `a missing store or an impossible file leaves nothing behind`() throws {
    let server = try RunningServer()
    #expect(try server.larder("backup", "none", file).status == 3)
    #expect(try server.larder("backup", "items", "/nowhere/a").status == 2)
    #expect(try server.larder("backup", "items", "/dev/null").error.contains("not a regular file"))
    #expect(try server.larder("backup", "items", folder.path).status == 2)
    #expect(try server.larder("restore", "copy", "/nowhere/a").status == 2)
    #expect(try server.larder("stores").lines.count == 1)
    #expect(try names().isEmpty)
  }

  @Test func `a backup is a snapshot of a store that is being written to`() async throws {
    let server = try RunningServer(data: folder.file("data"), stores: ["items=log?durability=none"])
    let client = try LarderClient(server.address)
    let store = client.store("items")
    for start in stride(from: 0, to: 20_000, by: 5_000) { try await store.putMany(Self.filler(start)) }
    let isDone = Flag()
    let writing = Task {
      var round = 0
      while !isDone.isSet {
        round += 1
        // The first key, the last key and one between them.
        try await store.putMany(["0", "k2", "z"].map { Write($0, Array("\(round)".utf8)) })
      }
      return round
    }
    let files = (0..<5).map { folder.file("\($0).backup").path }
    for file in files { #expect(try server.larder("backup", "items", file).status == 0) }
    isDone.set()
    let rounds = try await writing.value
    #expect(rounds > 5)
    for (index, file) in files.enumerated() {
      #expect(try server.larder("restore", "copy\(index)", file).status == 0)
      let copy = client.store("copy\(index)")
      let values = try await copy.getMany(["0", "k2", "z"]).map { $0?.bytes }
      #expect(values[0] != nil && values[1] == values[0] && values[2] == values[0])
      #expect(try await copy.count() == store.count())
    }
    await client.shutdown()
  }

  private static func filler(_ start: Int) -> [Write] {
    (start..<start + 5_000).map { Write("k\($0)", [UInt8](repeating: 0x78, count: 100)) }
  }
}

/// A flag that any thread can set once. Safe because the lock protects the value.
private final class Flag: @unchecked Sendable {
  private let lock = NSLock()
  private var value = false
  var isSet: Bool { lock.withLock { value } }
  func set() { lock.withLock { value = true } }
}
