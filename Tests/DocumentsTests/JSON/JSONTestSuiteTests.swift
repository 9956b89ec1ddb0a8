import Documents
import Foundation
import Testing

@Suite struct JSONTestSuiteTests {
  @Test func suite() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
      "JSONTestSuite/test_parsing")
    var ignored: [String] = []
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
      let bytes = Array(try Data(contentsOf: folder.appendingPathComponent(name)))
      var error: JSONError?
      do { try JSON.validate(bytes.span) } catch let e { error = e }
      switch name.first {
      case "y": #expect(error == nil, "\(name)")
      case "n": #expect(error != nil, "\(name)")
      default: ignored.append("\(name): \(error.map { "\($0)" } ?? "accepted")")
      }
    }
    print(ignored.joined(separator: "\n"))
  }
}
