import Testing

@testable import Storage

@Suite struct StoreCatalogTests {
  @Test(arguments: ["a", "0", "_", "users.v2", "A-b_c.d", String(repeating: "x", count: 128)])
  func `valid names of stores are accepted`(name: String) throws {
    #expect(try StoreName(name).text == name)
  }

  @Test(arguments: [
    "", ".", "..", "-a", ".hidden", "a/b", "a b", "é", "a\0", "a\n", String(repeating: "x", count: 129),
  ])
  func `invalid names of stores are rejected`(name: String) {
    #expect(throws: StorageError.invalidStoreName(name)) { try StoreName(name) }
  }

  @Test func `the error for an unknown engine lists the known ones`() {
    let error = StorageError.unknownEngine("tape", known: ["memory", "log", "directory"])
    #expect(throws: error) { try StoreSpecification("tape?limit=1MiB") }
    #expect(error.description.hasSuffix("known engines: memory, log, directory"))
  }

  @Test(arguments: [
    "memory", "log", "log?durability=none", "directory?durability=interval:250ms", "memory?limit=256MiB",
    "memory?limit=1025KiB",
  ])
  func `a specification's description is the text it was parsed from`(text: String) throws {
    #expect(try StoreSpecification(text).description == text)
  }

  @Test(arguments: [
    "memory?limit=0MiB", "memory?limit=1023KiB", "memory?limit=1025GiB", "memory?limit=-1GiB", "memory?limit=256",
    "memory?limit=1.5GiB", "memory?limit=99999999999999999999GiB", "memory?limit=", "memory?limit", "memory?",
    "memory?durability=none", "log?limit=256MiB", "directory?durability=none&limit=256MiB",
  ])
  func `unsupported options and invalid limits are rejected`(text: String) {
    let error = #expect(throws: StorageError.self) { try StoreSpecification(text) }
    guard case .invalidOption(let reason)? = error else { return #expect(Bool(false), "\(String(describing: error))") }
    #expect(reason.contains("256MiB") || reason.contains("durability=always"))
  }

  @Test(arguments: ["memory?limit=1MiB&limit=1MiB", "log?durability=none&durability=always"])
  func `an option that occurs twice is rejected`(text: String) {
    let option = text.contains("limit") ? "limit" : "durability"
    #expect(throws: StorageError.invalidOption("the option \(option) occurs twice")) { try StoreSpecification(text) }
  }

  @Test func `ensuring a store that exists with another limit fails`() throws {
    let catalog = StoreCatalog()
    let name = try StoreName("sessions")
    let made = try catalog.ensure(name, StoreSpecification("memory?limit=2MiB"))
    let (same, any) = try (
      catalog.ensure(name, StoreSpecification("memory?limit=2048KiB")), catalog.ensure(name, .init(.memory))
    )
    #expect(made && !same && !any)
    #expect(throws: StorageError.storeExists(name, .memory)) {
      try catalog.ensure(name, StoreSpecification("memory?limit=3MiB"))
    }
    #expect(try "\(catalog.open(name).specification)" == "memory?limit=2MiB")
  }

  @Test func `stores are created, opened, listed and dropped`() throws {
    let catalog = StoreCatalog(limit: 2)
    let (one, two, three) = try (StoreName("one"), StoreName("two"), StoreName("three"))
    let made = try catalog.create(two, .init(.memory))
    #expect(try catalog.open(two) === made)
    try catalog.create(one, .init(.memory))
    #expect(catalog.list().map(\.name) == [one, two])
    #expect(throws: StorageError.storeExists(one, .memory)) { try catalog.create(one, .init(.memory)) }
    #expect(throws: StorageError.tooManyStores(limit: 2)) { try catalog.create(three, .init(.memory)) }
    try catalog.drop(one)
    #expect(throws: StorageError.unknownStore(one)) { try catalog.open(one) }
    #expect(throws: StorageError.unknownStore(one)) { try catalog.drop(one) }
    try catalog.create(three, .init(.memory))
  }

  @Test func `using a dropped store or its snapshots fails`() throws {
    let catalog = StoreCatalog()
    let name = try StoreName("short-lived")
    let store = try catalog.create(name, .init(.memory))
    try store.access { map in try map.write("key".bytes, [1]) }
    let snapshot = store.access { map in map.snapshot(now: 0) }
    try catalog.drop(name)
    store.access { map in
      let isDropped = map.isDropped
      #expect(isDropped)
      #expect(throws: StorageError.storeDropped) { try map.write("key".bytes, [1]) }
      #expect(throws: StorageError.storeDropped) { _ = try map.copies(0..<1, in: snapshot) }
      #expect(throws: StorageError.storeDropped) { try map.check(snapshot) }
      let (entry, count) = (map.copy(of: "key".bytes), map.count(now: 0))
      #expect(entry == nil)
      #expect(count == 0)
      map.end(snapshot)
    }
  }
}
