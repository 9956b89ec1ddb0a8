import EntryFiles
import Foundation
import TestSupport
import Testing

@testable import Storage

@Suite struct EntryNameTests {
  @Test(arguments: [
    ("user:1", "user:1"), ("bob@example.com", "bob@example.com"), ("photo.jpg", "photo.jpg"), ("User", "^user"),
    ("a/b", "a%2fb"), ("..", "%2e."), (".", "%2e"), ("-rf", "%2drf"), ("a\0", "a%00"), ("é", "%c3%a9"),
    ("50%", "50%25"),
    ("^", "%5e"), ("a b", "a%20b"), ("~", "%7e"),
  ])
  func `a key is readable in its name`(key: String, name: String) {
    #expect(EntryName(of: key.bytes).text == name)
  }

  @Test func `the digest in the name of a long key is SHA-256`() {
    // The examples of FIPS 180-4, except for the million.
    #expect(
      SHA256.hexadecimal(of: "abc".bytes) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(SHA256.hexadecimal(of: []) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(
      SHA256.hexadecimal(of: "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".bytes)
        == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
    #expect(
      SHA256.hexadecimal(of: [UInt8](repeating: 0x61, count: 1_000))
        == "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3")
  }

  @Test func `hostile keys have harmless names that can be read back`() {
    for key in DirectoryRun.hostileKeys { check(key) }
  }

  /// Returns the name folded and normalized, as the most forgetful file systems would.
  private func forgotten(_ name: String) -> Set<String> {
    let folded = name.lowercased().folding(options: [.caseInsensitive, .widthInsensitive], locale: nil)
    return [folded.precomposedStringWithCompatibilityMapping, folded.decomposedStringWithCanonicalMapping]
  }

  private func check(_ key: [UInt8]) {
    let name = EntryName(of: key)
    let longest = unsafe EntryVersion(
      of: name, isList: true, revision: .max, expiry: .max, value: UnsafeRawBufferPointer(start: nil, count: 0)
    ).fileName(name)
    #expect(longest.utf8.count <= 255)
    #expect(name.text.utf8.first != UInt8(ascii: ".") && name.text.utf8.first != UInt8(ascii: "-"))
    #expect(name.text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") })
    #expect(forgotten(name.text) == [name.text])
    let read = EntryName(reading: name.text)
    #expect(read == name)
    #expect(read?.key == (name.isDigest ? nil : key))
  }

  @Test func `100,000 random keys have 100,000 names, whatever the file system normalizes`() {
    var random = SeededGenerator.announced()
    let alphabet = ["a", "A", "é", "e\u{301}", "É", ".", "/", "^", "%", "@", "\0", "1", "ß", "K", "k", "K", "-", "~"]
    var keys: Set<[UInt8]> = []
    while keys.count < 100_000 {
      // A small alphabet makes similar keys; every hundredth key is long.
      let length = keys.count % 100 == 0 ? 200 : Int.random(in: 1...8, using: &random)
      let key = (0..<length).map { _ in alphabet.randomElement(using: &random)! }.joined()
      keys.insert(key.bytes)
    }
    var names: Set<String> = []
    for (index, key) in keys.enumerated() {
      let name = EntryName(of: key)
      // An ASCII name without capitals is its own folded and normalized form. The full check is slow.
      if index % 50 == 0 { check(key) }
      let isPlain = name.text.utf8.allSatisfy { $0 < 0x80 && !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
      #expect(isPlain)
      names.insert(name.text)
    }
    #expect(names.count == keys.count)
  }

  @Test(arguments: ["", "A", "a/b", "%2", "%2F", "%61", "^", "^1", ".a", "-a", "é", "%~abc", "a b"])
  func `a name that doesn't belong to any key is rejected`(text: String) {
    #expect(EntryName(reading: text) == nil)
  }

  @Test func `a file name is read back`() {
    let name = EntryName(of: "a@1-x2-list".bytes)
    for (isList, expiry): (Bool, UInt64) in [(false, 0), (true, 0), (false, 9), (true, .max)] {
      let version = unsafe EntryVersion(
        of: name, isList: isList, revision: 17, expiry: expiry, value: UnsafeRawBufferPointer(start: nil, count: 0))
      let read = EntryVersion.read(version.fileName(name))
      #expect(read?.name == name && read?.version == version)
    }
  }

  @Test(arguments: [
    "a", "a@", "a@1", "a@0-00000000", "a@01-00000000", "a@+1-00000000", "a@1-0000000", "a@1-0000000A",
    "a@1-x0-00000000",
    "a@1-list-x1-00000000", "a@1-list-list-00000000", "a@1-00000000-", "a@1-00000000.bak", "@1-00000000",
    "A@1-00000000",
    "a@18446744073709551616-00000000", "a@1--00000000",
  ])
  func `a file name of another form is rejected`(text: String) {
    #expect(EntryVersion.read(text) == nil)
  }
}
