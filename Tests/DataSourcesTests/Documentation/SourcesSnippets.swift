import DataSources
import Foundation
import SQLiteDataSource
import SecretDataSource
import Testing

/// The code of "The sources".
@Suite struct SourcesSnippets {
  struct Product: Codable, Sendable, Equatable {
    let name: String
    let price: Int
  }

  @Test func `in files`() async throws {
    let temporary = try TemporaryDirectory()
    let directory = temporary.url
    let books = DeviceStorageDataSource<Book>(directory: directory)
    let lent = DeviceStorageDataSource<Book>(directory: directory, .prefix("lent"))
    let settings = DeviceStorageDataSource<Book>(directory: directory, .rootKey("settings"))
    for source in [books, lent, settings] {
      try await source.put(Book(title: "Marcovaldo"), forId: "a")
      #expect(try await source.keys() == ["a"])
    }
  }

  @Test func `files as they are`() async throws {
    let temporary = try TemporaryDirectory()
    let (directory, png) = (temporary.url, Data([0x89, 0x50]))
    let pictures = FileSystemDataSource(directory: directory)
    try await pictures.put(png, forId: "cover.png")
    #expect(try Data(contentsOf: directory.appendingPathComponent("cover.png")) == png)
  }

  @Test func secrets() async throws {
    let temporary = try TemporaryDirectory()
    let directory = temporary.url.appendingPathComponent("secrets")
    let keyFile = temporary.url.appendingPathComponent("key")
    let newKey = SecretKey()
    let key = try SecretKey.make(file: keyFile)
    let secrets = SecretDataSource<String>(directory: directory, key: key)
    try await secrets.put("correct horse", forId: "database")
    // The next snippet.
    let rotated = SecretDataSource<String>(directory: directory, key: newKey, older: [key])
    try await rotated.sealAgain()
    // The page goes on.
    #expect(try await SecretDataSource<String>(directory: directory, key: newKey).get("database") == "correct horse")
  }

  @Test func `in a database`() async throws {
    let temporary = try TemporaryDirectory()
    let file = temporary.url.appendingPathComponent("stock.sqlite")
    let database = try SQLiteDatabase(file: file)
    let stock = try SQLiteDataSource(database, store: "stock", of: Product.self, indexes: ["price"])
    try await stock.put(Product(name: "Lamp", price: 40), forId: "lamp")
    let cheap = try await stock.getAll(EntityQuery { $0.price < 50 && $0.name.hasPrefix("La") })
    let same = try await stock.getAll(EntityQuery("price < %@ AND name BEGINSWITH 'La'", 50))
    // The next snippet.
    let names = try SQLiteDataSource<Product, String>(
      database, store: "names", toDomain: { $0.name }, toEntity: { Product(name: $0, price: 0) })
    // The page goes on.
    #expect(cheap == [Product(name: "Lamp", price: 40)] && same == cheap)
    #expect(try await names.put("Lamp", forId: 1) == "Lamp")
  }
}
