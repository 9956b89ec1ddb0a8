import Documents
import Foundation
import Larder
import Testing

@Suite struct `A backup of a store with indexes` {
  private let folder = try! TemporaryFolder()
  private var file: String { folder.file("a.backup").path }

  private static let definitions = [
    #"{"name":"adults?","fields":["name"],"where":{"age":{"$gte":18}}}"#,
    #"{"name":"byAge","fields":["name",{"age":"desc"}]}"#,
  ]
  private static let indexes = definitions.map { try! DocumentIndex(parsing: $0) }

  /// Creates a store of two documents and two indexes, and makes a backup of it.
  private func backUp(_ server: RunningServer, _ client: LarderClient) async throws {
    let store = client.store("items")
    try await store.put("1", Array(#"{"name":"Ann","age":30}"#.utf8))
    try await store.put("2", Array(#"{"name":"Bob","age":10}"#.utf8))
    for index in Self.indexes { try await store.ensureIndex(index) }
    #expect(try server.larder("backup", "items", file).status == 0)
  }

  private func definitions(_ client: LarderClient, _ store: String) async throws -> [String] {
    try await client.store(store).indexes().map { "\($0.index)" }
  }

  @Test func `a backup has the definitions of indexes, which are verified and restored`() async throws {
    let server = try RunningServer(data: folder.file("data"), stores: ["items=log"])
    let client = try LarderClient(server.address)
    try await backUp(server, client)
    let verified = try server.larder("verify", file)
    #expect(verified.status == 0)
    let text =
      #","indexes":[\#(Self.definitions.joined(separator: ","))],"entries":2,"bytes":48,"revision":2,"intact":true}"#
    #expect(verified.text.hasSuffix(text + "\n"), "\(verified.text)")
    #expect(try server.larder("restore", "copy", file).status == 0)
    #expect(try server.shell("larder backup items - | larder restore piped - --engine memory").status == 0)
    for store in ["copy", "piped"] {
      #expect(try await definitions(client, store) == Self.definitions)
      try await client.store(store).waitForIndex(named: "byAge")
      #expect(try await client.store(store).count() == 2)
    }
    #expect(try server.larder("restore", "plain", file, "--no-indexes").status == 0)
    #expect(try await definitions(client, "plain") == [])
    await client.shutdown()
  }

  @Test func `restore refuses a store that has other indexes under the names in the backup`() async throws {
    let server = try RunningServer()
    let client = try LarderClient(server.address)
    try await backUp(server, client)
    let same = try server.larder("restore", "items", file, "--merge")
    #expect(same.status == 0, "\(same.error)")
    #expect(try await definitions(client, "items") == Self.definitions)

    try await client.createStore("other", engine: "memory")
    try await client.store("other").ensureIndex(DocumentIndex(["x"], name: "byAge"))
    let refused = try server.larder("restore", "other", file)
    #expect(refused.status == 3)
    #expect(refused.error.contains("another index 'byAge'") && refused.error.contains("--no-indexes"))
    #expect(try await client.store("other").count() == 0)
    #expect(try await client.store("other").indexes().count == 1)
    #expect(try server.larder("restore", "other", file, "--no-indexes").status == 0)

    try await client.createStore("full", engine: "memory")
    for number in 0..<63 { try await client.store("full").ensureIndex(DocumentIndex(["f\(number)"])) }
    let full = try server.larder("restore", "full", file)
    #expect(full.status == 3 && full.error.contains("65 indexes, but the limit is 64"), "\(full.error)")
    #expect(try await client.store("full").count() == 0)
    await client.shutdown()
  }

  @Test func `a backup of version 2 is verified without a server`() throws {
    let vectors = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Protocol/vectors/backup/backups.json")
    let backups = try JSONSerialization.jsonObject(with: Data(contentsOf: vectors)) as? [[String: Any]] ?? []
    let backup = try #require(backups.first { $0["name"] as? String == "with-indexes" })
    let digits = Array(try #require(backup["hex"] as? String))
    let bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! }
    try Data(bytes).write(to: folder.file("a.backup"))
    let command = try Command.larder(["verify", file])
    #expect(command.status == 0)
    let lines = try #require(backup["indexes"] as? [String])
    #expect(lines.count == 2)
    #expect(command.text.contains(#""indexes":[\#(lines.joined(separator: ","))],"entries":4,"#), "\(command.text)")
  }
}
