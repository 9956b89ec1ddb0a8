import Testing

@testable import Tokens

@Suite struct TokenTests {
  @Test func `a token has its form, and differs from every other`() throws {
    let tokens = (0..<1_000).map { _ in AccessToken() }
    #expect(Set(tokens.map(\.text)).count == 1_000)
    for token in tokens {
      #expect(token.text.wholeMatch(of: #/ldr_[0-9A-Za-z]{49}/#) != nil)
      #expect(AccessToken(token.text) == token)
    }
    // All digits occur in all places.
    for place in 4..<47 { #expect(Set(tokens.map { Array($0.text.utf8)[place] }).count == 62) }
  }

  @Test func `a wrong digit is noticed`() {
    let text = AccessToken().text
    for index in text.indices {
      var wrong = text
      wrong.replaceSubrange(index...index, with: text[index] == "x" ? "y" : "x")
      #expect(AccessToken(wrong) == nil)
    }
    for wrong in ["", "ldr_", text + "0", String(text.dropLast()), " " + text.dropFirst()] {
      #expect(AccessToken(wrong) == nil)
    }
  }

  @Test func `the checksum and the digest are what other programs compute`() throws {
    // zlib.crc32(b"0" * 43) is 0x7849568f, which is 2CZclj in base 62.
    let token = try #require(AccessToken("ldr_" + String(repeating: "0", count: 43) + "2CZclj"))
    #expect(token.digest.text == "54370fe1ef0d72c0ad9f6180288e8cbcb295e2da75e587db5c0db6300fe0a745")
  }

  @Test func `a file keeps its tokens`() throws {
    var file = TokenFile()
    let records = [
      TokenRecord(name: "web", digest: AccessToken().digest, created: 1_700_000_000, expiry: nil),
      TokenRecord(name: "spiffe://example/job", digest: AccessToken().digest, created: 5, expiry: 1_800_000_000),
    ]
    #expect((records + [records[0]]).map { file.add($0) } == [true, true, false])
    #expect(try TokenFile(file.bytes, from: "tokens") == file)
    #expect(["web", "web"].map { file.remove($0) } == [true, false])
    #expect(try TokenFile(file.bytes, from: "tokens").records == [records[1]])
  }

  @Test func `a malformed line is an error with its number`() throws {
    let digest = AccessToken().digest.text
    for line in [
      "web", "web \(digest) 5", "web \(digest) 5 6 7", "web \(digest) x -", "web \(digest.uppercased()) 5 -",
      "w b 5 - -",
      "web \(digest.dropLast()) 5 -", "wéb \(digest) 5 -", "web  \(digest) 5 -",
    ] {
      let flaw = TokenFile.Flaw(description: "tokens, line 3: this is not NAME SHA-256 CREATED EXPIRES")
      #expect(throws: flaw) { try TokenFile(Array("# comment\n\n\(line)\n".utf8), from: "tokens") }
    }
    let twice = "web \(digest) 5 -\n"
    #expect(throws: TokenFile.Flaw(description: "tokens, line 2: 'web' has a token already")) {
      try TokenFile(Array((twice + twice).utf8), from: "tokens")
    }
  }
}
