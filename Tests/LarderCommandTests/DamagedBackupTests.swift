import Foundation
import Testing

@Suite struct `A damaged backup` {
  private let folder = try! TemporaryFolder()
  private var file: URL { folder.file("a.backup") }

  /// Makes a backup of three entries. Returns its bytes and the offsets of its records.
  private func sample(_ server: RunningServer) throws -> (bytes: [UInt8], places: [Int]) {
    for key in ["a", "b", "c"] { _ = try server.larder("put", "items", key, "value of \(key)") }
    #expect(try server.larder("backup", "items", file.path).status == 0)
    let bytes = [UInt8](try Data(contentsOf: file))
    let first = 24 + "items".utf8.count + "memory".utf8.count
    let size = 8 + 8 + 8 + "a".utf8.count + "value of a".utf8.count
    #expect(bytes.count == first + 3 * size + 32)
    return (bytes, (0...3).map { first + $0 * size })
  }

  @Test func `every flipped bit in a backup is reported with its offset`() throws {
    let server = try RunningServer()
    let (bytes, places) = try sample(server)
    let intact = try server.larder("verify", file.path)
    #expect(intact.status == 0)
    #expect(intact.text.hasPrefix(#"{"store":"items","engine":"memory","made":"20"#))
    #expect(intact.text.hasSuffix(#"Z","indexes":[],"entries":3,"bytes":33,"revision":3,"intact":true}"# + "\n"))
    // In the header, in each record, in the trailer.
    let flips = [(9, 8), (30, 0)] + (0..<3).map { (places[$0] + 20, places[$0]) } + [(places[3] + 9, places[3])]
    for (place, offset) in flips {
      var flipped = bytes
      flipped[place] ^= 1
      try Data(flipped).write(to: file)
      let command = try server.larder("verify", file.path)
      #expect(command.status == 5)
      #expect(command.error.contains("is damaged at byte \(offset):"), "\(command.error)")
      #expect(place < 32 || command.text.contains(#""intact":false,"offset":\#(offset),"#))
    }
  }

  @Test(arguments: ["x", "{\"key\":\"a\",\"value\":\"b\"}\n", "LARDRLOG", "LARDRBAQ and more than a header has"])
  func `a file that isn't a backup is refused as such, not as damaged`(text: String) throws {
    let server = try RunningServer()
    try Data(text.utf8).write(to: file)
    for arguments in [["verify", file.path], ["restore", "items", file.path], ["restore", "new", "-"]] {
      let command = try server.larder(arguments, input: Array(text.utf8))
      #expect(
        command.status == 5 && command.error.contains("is not a backup; 'larder backup' makes backups"), "\(command)")
    }
    #expect(try server.larder("stores").lines.count == 1)
  }

  @Test func `a truncated backup and bytes after its end are reported`() throws {
    let server = try RunningServer()
    let (bytes, places) = try sample(server)
    for count in [0, 3, 24, places[0], places[0] + 7, places[1], places[3] - 1, places[3], bytes.count - 1] {
      try Data(bytes[..<count]).write(to: file)
      let command = try server.larder("verify", file.path)
      #expect(command.status == 5)
      let offset = places.last { $0 <= count } ?? 0
      #expect(command.error.contains("is damaged at byte \(offset):"), "\(count): \(command.error)")
      #expect(try server.larder(["verify", "-"], input: Array(bytes[..<count])).status == 5)
    }
    try Data(bytes + bytes).write(to: file)
    #expect(try server.larder("verify", file.path).error.contains("at byte \(bytes.count): something follows"))
  }

  @Test func `a damaged backup changes nothing from a file, and restores the intact part from a pipe`() throws {
    let server = try RunningServer()
    let (bytes, places) = try sample(server)
    var flipped = bytes
    flipped[places[2] + 26] ^= 0x80
    try Data(flipped).write(to: file)
    let command = try server.larder("restore", "copy", file.path)
    #expect(command.status == 5)
    #expect(command.error.contains("is damaged at byte \(places[2]):") && command.error.contains("nothing was changed"))
    #expect(try server.larder("stores").lines.count == 1)
    let piped = try server.larder(["restore", "copy", "-"], input: flipped)
    #expect(piped.status == 5)
    #expect(piped.error.contains("are restored (2)"))
    #expect(try server.larder("count", "copy").text == "2\n")
    #expect(
      try server.larder(["restore", "none", "-"], input: Array("no backup at all, but long enough".utf8)).status == 5)
    #expect(try server.larder("stores").lines.count == 2)
  }
}
