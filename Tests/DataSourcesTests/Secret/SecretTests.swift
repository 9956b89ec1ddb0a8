import DataSources
import Foundation
import SecretDataSource
import TestSupport
import Testing

@Suite struct SecretTests {
  private let stored = InMemoryDataSource<Data>()
  private let key = SecretKey()

  var source: SecretDataSource<Item> { SecretDataSource(stored, key: key) }

  @Test func `the stored bytes reveal nothing of the value`() async throws {
    try await source.put("invisible", forId: "a")
    try await source.putAll(["invisible"], forId: "l")
    for key in ["a", "l"] {
      let sealed = try await stored.get(key)
      #expect(sealed.range(of: Data("invisible".utf8)) == nil && sealed.range(of: Data("title".utf8)) == nil)
    }
  }

  @Test func `the same value is sealed differently each time`() async throws {
    var seen: Set<Data> = []
    for _ in 0..<100 {
      try await source.put("x", forId: "a")
      seen.insert(try await stored.get("a"))
    }
    #expect(seen.count == 100)
  }

  @Test func `a missing key is an error that names the key, differs from damage, and is never a value`() async throws {
    try await source.put("x", forId: "a")
    let other = SecretDataSource<Item>(stored, key: SecretKey(), damaged: .skip { Issue.record("damaged: \($0)") })
    do {
      let value = try await other.get("a")
      Issue.record("got \(value)")
    } catch DataSourceError.dataSerialization {
      Issue.record("a missing key is reported as damage")
    } catch let error as DataSourceError where error == .wrongKey {
      #expect("\(key)".hasPrefix("secret key "))
      #expect(error.message.contains("\(key)".dropFirst("secret ".count)))
    }
    #expect(await failure { try await other.getAll(AllObjectsQuery()) } == .wrongKey)
    #expect(try await other.keys() == ["a"])
  }

  @Test func `damaged secrets are skipped and reported on request`() async throws {
    try await source.putAll(["x", "y"], forId: ["a", "b"])
    try await stored.put(Data([1, 2]), forId: "a")
    let reported = Recorder<String>()
    let lenient = SecretDataSource<Item>(stored, key: key, damaged: .skip { reported.add($0.key) })
    #expect(await failure { try await source.getAll(AllObjectsQuery()) } == .dataSerialization)
    #expect(try await lenient.getAll(AllObjectsQuery()) == ["y"])
    #expect(try await lenient.getAll(["a", "b"], missing: .skip) == ["y"])
    #expect(reported.events == ["a", "a"])
    #expect(await failure { try await lenient.get("a") } == .dataSerialization)
  }

  @Test func `every flipped bit and every missing byte is an error`() async throws {
    try await source.put("x", forId: "a")
    let sealed = try await stored.get("a")
    for bit in 0..<sealed.count * 8 {
      var changed = sealed
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      try await stored.put(changed, forId: "a")
      #expect(await failure { try await source.get("a") } == .dataSerialization)
    }
    for count in 0..<sealed.count {
      try await stored.put(sealed.prefix(count), forId: "a")
      #expect(await failure { try await source.get("a") } == .dataSerialization)
    }
    try await stored.put(sealed, forId: "a")
    #expect(try await source.get("a") == "x")
  }

  @Test func `a value that was moved to another entry is an error`() async throws {
    try await source.put("x", forId: "a")
    try await stored.put(stored.get("a"), forId: "b")
    #expect(await failure { try await source.get("b") } == .dataSerialization)
    try await stored.putAll([stored.get("a")], forId: "a")
    #expect(await failure { try await source.getAll("a") } == .dataSerialization)
  }

  @Test func `an older key opens values until everything is sealed again`() async throws {
    let new = SecretKey()
    try await source.put("old", forId: "a")
    try await source.putAll(["old", "er"], forId: "l")
    let both = SecretDataSource<Item>(stored, key: new, older: [key])
    try await both.put("new", forId: "b")
    #expect(try await both.getAll(AllObjectsQuery()) == ["old", "new", "old", "er"])
    #expect(await failure { try await source.get("b") } == .wrongKey)
    try await both.sealAgain()
    let after = SecretDataSource<Item>(stored, key: new)
    #expect(try await after.getAll(AllObjectsQuery()) == ["old", "new", "old", "er"])
    #expect(try await after.getAll("l") == ["old", "er"])
  }

  @Test func `48: another type is an error that doesn't reveal the value`() async throws {
    try await source.put("invisible", forId: "a")
    do {
      let value = try await SecretDataSource<Int>(stored, key: key).get("a")
      Issue.record("got \(value)")
    } catch let error as DataSourceError {
      #expect(error == .dataSerialization)
      #expect(!error.message.contains("invisible"))
    }
    var dumped = ""
    dump(source, to: &dumped)
    #expect(dumped == "- SecretDataSource<Item>\n" && "\(source)" == "SecretDataSource<Item>")
  }

  @Test func `a value that can't be encoded is an error that doesn't reveal it`() async throws {
    let numbers = SecretDataSource<[Double]>(stored, key: key)
    do {
      try await numbers.put([12345.5, .infinity], forId: "a")
      Issue.record("no error")
    } catch let error as DataSourceError {
      #expect(error == .dataSerialization && !error.message.contains("12345"))
    }
  }

  @Test func `a directory stores secrets`() async throws {
    let directory = try TemporaryFolder()
    let folder = directory.url.appendingPathComponent("secrets")
    try await SecretDataSource<Item>(directory: folder, key: key).put("x", forId: "a")
    #expect(try await SecretDataSource<Item>(directory: folder, key: key).get("a") == "x")
    #expect(try directory.subpaths() == ["secrets", "secrets/.lock", "secrets/a"])
  }
}
