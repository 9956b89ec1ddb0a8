import Foundation
import Larder
import Testing

@Suite struct ReadmeExample {
  @Test func `the README's example does what it says`() async throws {
    try await withServer { server, _ in
      try await server.dropStore("items")
      try await Self.example(on: server)
      #expect(try await server.store("items").count() == 2)
    }
  }

  @Test func `the README shows the example that is run`() throws {
    let here = URL(fileURLWithPath: #filePath)
    let readme = here.deletingLastPathComponent().appendingPathComponent("../../README.md")
    let text = try String(contentsOf: readme, encoding: .utf8)
    let block = try #require(
      text.components(separatedBy: "```swift\nlet client").last?.components(separatedBy: "```").first)
    let shown = block.split(separator: "\n").dropFirst().map { $0.trimmingCharacters(in: .whitespaces) }
    let source = try String(contentsOf: here, encoding: .utf8).split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    let start = try #require(source.firstIndex(of: shown[0]))
    #expect(Array(source[start..<start + shown.count - 1]) == shown.dropLast())
  }

  private static func example(on client: LarderClient) async throws {
    try await client.createStore("items")
    let items = client.store("items")

    let revision = try await items.put("book:1", "The Name of the Rose".utf8)
    try await items.put("book:2", "Invisible Cities".utf8, expiresIn: .seconds(3_600))

    if let entry = try await items.get("book:1"), let bytes = entry.bytes {
      print(String(decoding: bytes, as: UTF8.self), entry.revision == revision)
    }
    for try await page in items.pages(of: 100, prefix: "book:") {
      for entry in page { print(entry.key) }
    }
  }
}
