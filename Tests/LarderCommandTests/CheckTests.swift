import Foundation
import Testing

@Suite struct `Checking a data directory` {
  private let folder = try! TemporaryFolder()
  private var data: URL { folder.file("data") }
  private var out: String { folder.file("out").path }

  private struct Report: Decodable {
    struct Damage: Decodable, Equatable {
      var file: String
      var offset: Int?
      var what: String
    }

    var store: String
    var engine: String?
    var files: Int
    var records: Int?
    var entries: Int?
    var indexes: Int
    var revision: Int
    var intact: Bool
    var damage: [Damage]
    var remarks: [String]
    var copied: Int?
    var lostBytes: Int?
    var lostEntries: Int?
    var lostFiles: Int?
  }

  /// Runs `check` and returns its reports by store.
  private func check(_ arguments: String...) throws -> (reports: [String: Report], command: Command) {
    let command = try Command.larder(["check"] + arguments)
    let reports = try command.lines.map { try JSONDecoder().decode(Report.self, from: Data($0.utf8)) }
    return (Dictionary(uniqueKeysWithValues: reports.map { ($0.store, $0) }), command)
  }

  /// Creates the data directory of a server that has stopped: a log with records of some hundred entries, and a
  /// directory store of four.
  private func make(entries: Int = 5_000, valueSize: Int = 100) throws {
    let server = try RunningServer(data: data, stores: ["items=log", "files=directory?durability=none"])
    let value = String(repeating: "x", count: valueSize)
    let lines = (0..<entries).map { #"{"key":"k\#($0)","value":"\#(value)"}"# }
    #expect(try server.larder("load", "items", "-", input: lines.joined(separator: "\n")).status == 0)
    for key in ["a", "b", "c"] { _ = try server.larder("put", "files", key, "value of \(key)") }
    _ = try server.larder("put", "files", "soon", "gone", "--expire", "1h")
    // The next journal shows that the frames in the first one aren't needed any more.
    for _ in 0..<3_000 where !FileManager.default.fileExists(atPath: file("files", ".journal-2").path) {
      usleep(10_000)
    }
    server.stop()
  }

  private func file(_ store: String, _ name: String) -> URL { data.appending(path: "stores/\(store)/files/\(name)") }

  private func segments() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: file("items", "").path).filter { $0.hasSuffix(".log") }.sorted()
  }

  private func change(_ file: URL, _ body: (inout [UInt8]) -> Void) throws {
    var bytes = [UInt8](try Data(contentsOf: file))
    body(&bytes)
    try Data(bytes).write(to: file)
  }

  /// Returns the offsets of the frames in a segment, after its header, and of its end.
  private func frames(_ bytes: [UInt8]) -> [Int] {
    var places = [72]
    while let place = places.last, place + 4 <= bytes.count {
      let length = (0..<4).reduce(0) { $0 | Int(bytes[place + $1]) << (8 * $1) }
      if length == 0 { break }
      places.append(place + 24 + length)
    }
    return places
  }

  /// Returns the contents of every file except the lock.
  private func contents() throws -> [String: Data] {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: data.path).filter { $0 != "lock" }
    return Dictionary(
      uniqueKeysWithValues: paths.map { ($0, (try? Data(contentsOf: data.appending(path: $0))) ?? Data()) })
  }

  @Test func `check finds the files of a stopped server intact and changes nothing`() throws {
    try make()
    let before = try contents()
    let (reports, command) = try check(data.path)
    #expect(command.status == 0 && command.error.isEmpty)
    #expect(reports.count == 2 && reports.values.allSatisfy { $0.intact && $0.damage.isEmpty && $0.remarks.isEmpty })
    #expect(reports["files"]?.engine == "directory" && reports["files"]?.entries == 4)
    #expect(reports["items"]?.engine == "log" && (reports["items"]?.records ?? 0) >= 10)
    #expect(try contents() == before)
    #expect(try Command.larder(["check", "."], input: []).status == 2)
  }

  @Test func `check refuses a data directory in use and names the process`() throws {
    let server = try RunningServer(data: data, stores: ["items=log"])
    for arguments in [[data.path], [data.path, "--salvage", out]] {
      let command = try Command.larder(["check"] + arguments)
      #expect(command.status == 3)
      #expect(command.error.contains("in use by process \(server.process.processIdentifier);"), "\(command.error)")
    }
    #expect(!FileManager.default.fileExists(atPath: out))
  }

  @Test func `check reports the segment and offset of a flipped bit and salvages the rest`() throws {
    try make()
    let segment = file("items", try #require(try segments().first))
    let bytes = [UInt8](try Data(contentsOf: segment))
    let places = frames(bytes)
    let middle = places.count / 2
    let record = places[middle] + 24
    try change(segment) { $0[record + 30] ^= 4 }
    let before = try contents()
    let (reports, command) = try check(data.path)
    #expect(command.status == 5)
    #expect(command.error.contains("the store 'items' is damaged") && command.error.contains("--salvage"))
    #expect(reports["files"]?.intact == true)
    let damage = try #require(reports["items"]?.damage)
    #expect(damage.count == 1 && damage[0].file == segment.path && damage[0].offset == record)

    // The option can come first.
    let (salvaged, second) = try check("--salvage", data.path, out)
    #expect(second.status == 5)
    #expect(salvaged["items"]?.lostBytes == places[middle + 1] - record)
    #expect(salvaged["items"]?.copied == salvaged["items"]?.records)
    #expect(salvaged["files"]?.copied == 4 && salvaged["files"]?.lostEntries == 0)
    #expect(try contents() == before)
    #expect(try check(out).command.status == 0)

    let server = try RunningServer(data: URL(filePath: out), stores: [])
    #expect(
      try server.larder("stores").lines.allSatisfy {
        $0.contains(#""durability":"\#($0.contains("files") ? "none" : "always")""#)
      })
    let left = try #require(Int(server.larder("count", "items").text.dropLast()))
    #expect(left < 5_000 && left > 4_000)
    #expect(try #require(salvaged["items"]?.lostEntries) >= 5_000 - left)
    #expect(try server.larder("get", "files", "b").text == "value of b")
    #expect(try server.larder("get-many", "files", "soon").text.contains(#""expiresInMilliseconds":3"#))
    // The revision counter continues beyond what was lost.
    let revision = try #require(reports["items"]?.revision)
    let next = try #require(UInt64(server.larder("put", "items", "new", "").text.dropLast()))
    #expect(next > UInt64(revision) + (1 << 32))
  }

  @Test func `check reports a truncated or missing segment`() throws {
    // Large enough for several segments.
    try make(entries: 8_000, valueSize: 1_000)
    let names = try segments()
    try #require(names.count > 3)
    let cut = file("items", names[1])
    let places = frames([UInt8](try Data(contentsOf: cut)))
    try change(cut) { $0.removeLast($0.count - places[3] - 5) }
    try FileManager.default.removeItem(at: file("items", names[2]))
    let (reports, command) = try check(data.path)
    #expect(command.status == 5)
    let damage = try #require(reports["items"]?.damage)
    #expect(damage.contains { $0.file == cut.path && $0.offset == places[3] })
    #expect(damage.contains { $0.file.hasSuffix(names[2]) && $0.what.contains("missing") } && damage.count == 2)
    let (salvaged, _) = try check(data.path, "--salvage", out)
    #expect(salvaged["items"]?.lostFiles == 1)
    #expect(try #require(salvaged["items"]?.lostEntries) > 0)
    #expect(try check(out).command.status == 0)
    #expect(try RunningServer(data: URL(filePath: out), stores: []).larder("get", "items", "k0").status == 0)
  }

  @Test func `check counts the indexes of a store and names a damaged file of definitions`() throws {
    try make(entries: 20)
    let definitions = data.appending(path: "stores/files/indexes")
    let text = "larder indexes 1 228e0d48\n" + #"{"name":"byAge","fields":[{"age":"desc"}]}"# + "\n"
    try Data(text.utf8).write(to: definitions)
    #expect(try check(data.path).reports.mapValues(\.indexes) == ["files": 1, "items": 0])
    #expect(try check(data.path, "--salvage", out).command.status == 0)
    #expect(try Data(contentsOf: URL(filePath: out).appending(path: "stores/files/indexes")) == Data(text.utf8))
    try FileManager.default.removeItem(atPath: out)

    try Data(text.replacing("desc", with: "asc").utf8).write(to: definitions)
    let (reports, command) = try check(data.path)
    #expect(command.status == 5 && command.error.contains("the store 'files' is damaged"))
    let report = try #require(reports["files"])
    #expect(report.damage == [.init(file: definitions.path, offset: nil, what: "the checksum is wrong")])
    #expect(report.entries == 4 && report.indexes == 0)
    #expect(try check(data.path, "--salvage", out).reports["files"]?.copied == 4)
    #expect(try check(out).reports.values.allSatisfy { $0.intact && $0.indexes == 0 })
    let server = try RunningServer(data: URL(filePath: out), stores: [])
    #expect(try server.larder("get", "files", "b").text == "value of b")
  }

  @Test func `check doesn't report the torn end of a log after a crash as damage`() throws {
    let server = try RunningServer(data: data, stores: ["items=log"])
    for key in ["a", "b"] { _ = try server.larder("put", "items", key, "1") }
    kill(server.process.processIdentifier, SIGKILL)
    server.stop()
    let last = file("items", try #require(try segments().last))
    let places = frames([UInt8](try Data(contentsOf: last)))
    try change(last) { $0.replaceSubrange(places.last!..<places.last! + 3, with: [40, 0, 0]) }
    let (reports, command) = try check(data.path)
    #expect(command.status == 0)
    #expect(reports["items"]?.remarks.count == 1)
    #expect(reports["items"]?.remarks.first?.contains("unfinished write from byte \(places.last!)") == true)
    #expect(try RunningServer(data: data, stores: []).larder("count", "items").text == "2\n")
  }

  @Test func `check reports edited files and a damaged journal of a directory store`() throws {
    try make(entries: 20)
    let names = try FileManager.default.contentsOfDirectory(atPath: file("files", "").path)
    let edited = file("files", try #require(names.first { $0.hasPrefix("b@") }))
    try change(edited) { $0[0] ^= 1 }
    try change(file("files", ".journal")) { bytes in for place in [3, 515] { bytes[place] ^= 1 } }
    try Data("notes".utf8).write(to: file("files", "README"))
    let (reports, command) = try check(data.path)
    #expect(command.status == 5)
    let report = try #require(reports["files"])
    #expect(report.entries == 3 && report.remarks.count == 1 && report.remarks[0].contains("README"))
    #expect(Set(report.damage.map(\.file)) == [edited.path, file("files", ".journal").path])
    let (salvaged, _) = try check(data.path, "--salvage", out)
    #expect(salvaged["files"]?.copied == 3 && salvaged["files"]?.lostEntries == 1)
    let server = try RunningServer(data: URL(filePath: out), stores: [])
    #expect(try server.larder("get", "files", "c").text == "value of c")
    #expect(try server.larder("get", "files", "b").status == 1)
    let next = try #require(UInt64(server.larder("put", "files", "new", "").text.dropLast()))
    #expect(next > 1 << 32)
  }

  @Test func `check reads a store without its description, and names folders that aren't stores`() throws {
    try make(entries: 20)
    try Data("nonsense".utf8).write(to: data.appending(path: "stores/items/store"))
    try Data().write(to: data.appending(path: "stores/stray"))
    let (reports, command) = try check(data.path)
    #expect(command.status == 5)
    #expect(reports["items"]?.damage.map(\.file) == [data.appending(path: "stores/items/store").path])
    #expect(reports["items"]?.engine == "log" && (reports["items"]?.records ?? 0) > 0)
    #expect(reports["stray"]?.damage.count == 1)
    _ = try check(data.path, "--salvage", out)
    #expect(try RunningServer(data: URL(filePath: out), stores: []).larder("count", "items").text == "20\n")
  }

  @Test func `check salvages only to a new directory`() throws {
    try make(entries: 5)
    for place in [data.path, data.appending(path: "x").path, folder.path, "/nowhere/x"] {
      #expect(try check(data.path, "--salvage", place).command.status == 2)
    }
    try FileManager.default.createDirectory(atPath: out + ".unfinished", withIntermediateDirectories: false)
    #expect(try check(data.path, "--salvage", out).command.error.contains("out.unfinished' already exists"))
  }
}
