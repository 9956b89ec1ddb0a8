import Foundation
import Testing

@testable import DataSources

@Suite struct FolderTests {
  let directory: TemporaryDirectory
  let folder: Folder

  init() throws {
    directory = try TemporaryDirectory()
    folder = Folder(path: directory.url.path)
  }

  func write(_ text: String, _ name: String) throws {
    try Data(text.utf8).write(to: directory.url.appendingPathComponent(name))
  }

  @Test func `38: a plan that a crash left is carried out before anything else`() throws {
    try write("new a", ".new-0")
    try write("old b", "b")
    try write(#"[{"rename":{"_0":".new-0","to":"a"}},{"remove":{"_0":"b"}}]"#, ".plan")
    let a = try folder.reading { try folder.bytes(of: "a") }
    #expect(a == Data("new a".utf8))
    #expect(try directory.files() == [".lock", "a"])
  }

  @Test func `38: a plan that was carried out in part is finished`() throws {
    try write("new a", "a")
    try write("new b", ".new-1")
    try write(#"[{"rename":{"_0":".new-0","to":"a"}},{"rename":{"_0":".new-1","to":"b"}}]"#, ".plan")
    try folder.writing { try folder.apply([.write("c", Data("c".utf8))]) }
    #expect(try directory.files() == [".lock", "a", "b", "c"])
    #expect(try folder.bytes(of: "b") == Data("new b".utf8))
  }

  @Test func `38: a crash before the plan changes nothing`() throws {
    try write("old", "a")
    try write("new", ".new-0")
    try write("[{\"ren", ".plan.new")
    let a = try folder.reading { try folder.bytes(of: "a") }
    #expect(a == Data("old".utf8))
    try folder.writing { try folder.apply([.write("a", Data("1".utf8)), .write("b", Data("2".utf8))]) }
    #expect(try directory.files() == [".lock", "a", "b"])
  }

  @Test func `a change that can't be prepared changes nothing`() throws {
    try FileManager.default.createDirectory(
      at: directory.url.appendingPathComponent(".new-1"), withIntermediateDirectories: false)
    #expect(throws: DataSourceError.failed) {
      try folder.writing { try folder.apply([.write("a", Data()), .write("b", Data())]) }
    }
    #expect(try directory.files() == [".lock", ".new-1"])
  }

  @Test func `names are escaped, and no two keys share one`() {
    #expect(EntryFileName.name(of: "a.b-c_D9") == "a.b-c_D9")
    #expect(EntryFileName.name(of: ".a/ é\0") == "%2Ea%2F%20%C3%A9%00")
    for key in ["", "..", "a%b", "=x", "é", "\u{0}"] {
      #expect(EntryFileName.key(of: EntryFileName.name(of: key)) == key)
    }
    for name in ["%2e", "%41", "%", "%4", ".a", "a b", "%FF", "%+1"] { #expect(EntryFileName.key(of: name) == nil) }
    let long = EntryFileName.name(of: String(repeating: "k", count: 241))
    #expect(long.utf8.count == 65 && long.hasPrefix("="))
  }

  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (String(repeating: "a", count: 1_000), "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"),
  ])
  func `digests are those of the standard`(_ message: String, _ digest: String) {
    #expect(SHA256.hexadecimal(of: message.utf8) == digest)
  }
}
