import DataSources
import SQLiteDataSource
import Testing

/// The code of "Migrating from Harmony".
@Suite struct MigratingFromHarmonySnippets {
  @Test func `futures and await`() async throws {
    let (source, item) = (InMemoryDataSource<Item>(), Item("x"))
    let printed = Recorder<String>()
    @Sendable func print(_ text: String) { printed.add(text) }
    func calls() {
      source.put(item, forId: "myKey").then { stored in
        print("Success: \(stored)")
      }.fail { error in
        print("Failure: \(error)")
      }
    }
    calls()
    while printed.events.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
    #expect(printed.events[0].hasPrefix("Success"))
    // In code that may wait.
    let stored = try await source.put(item, forId: "myKey")
    #expect(stored == item)
  }

  @Test func `a Realm query`() async throws {
    let temporary = try TemporaryDirectory()
    let database = try SQLiteDatabase(file: temporary.url.appendingPathComponent("items"))
    let items = try SQLiteDataSource(database, store: "items", of: Item.self)
    try await items.put(Item("Desk lamp", price: 15), forId: 1)
    let cheap = try await items.getAll(ItemsCheaperThan(price: 20))
    let inWords = try await items.getAll(EntityQuery("price < %d AND title CONTAINS[c] %@", 20, "lamp"))
    #expect(cheap.count == 1 && inWords == cheap)
  }

  @Test func `ids of one's own`() {
    #expect(IdQuery(Shelf.poems).key == "poems" && IdQuery(Place(row: 1, column: 2)).key == "1:2")
  }

  struct ItemsCheaperThan: PredicateQuery {
    let price: Int
    var predicate: EntityPredicate { EntityPredicate { $0.price < price } }
  }

  enum Shelf: String, StableKey {
    case novels, poems
  }

  struct Place: StableKey {
    let row: Int
    let column: Int
    var stableKey: String { "\(row):\(column)" }
  }
}
