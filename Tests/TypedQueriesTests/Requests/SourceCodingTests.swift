import DataSources
import Documents
import Foundation
import LarderTesting
import SQLiteDataSource
import TestSupport
import Testing
import TypedQueries

/// Data sources of a type with an encoder of its own.
@Suite struct SourceCodingTests {
  typealias Owner = CodingTests.Owner

  private static let noon = Date(timeIntervalSince1970: 1_700_000_000)
  private static let owners = ["Ann", "Bob"].map { name in
    Owner(ownerName: name, bestPet: .init(firstName: "of \(name)", born: noon), pets: [])
  }

  /// Checks that requests find values, and that values come back as they were.
  private func check(_ source: some GetDataSource<Owner> & PutDataSource<Owner>) async throws {
    try await source.putAll(Self.owners, forId: ["a", "b"])
    #expect(try await source.fetch(Owner.all) == Self.owners)
    #expect(try await source.fetch(Owner.all.where(\.ownerName == "Bob")) == [Self.owners[1]])
    #expect(try await source.fetch(Owner.all.where(\.bestPet.born == Self.noon).sort(\.ownerName)) == Self.owners)
    #expect(try await source.get("a") == Self.owners[0])
  }

  @Test func `a source in memory evaluates requests with its own coding`() async throws {
    try await check(InMemoryDataSource<Owner>())
  }

  @Test func `a source of files evaluates requests with its own coding`() async throws {
    let folder = try TemporaryFolder()
    try await check(DeviceStorageDataSource<Owner>(directory: folder.url))
    try await check(DeviceStorageDataSource<Owner>(directory: folder.url, .rootKey("owners")))
  }

  @Test(arguments: [[], ["owner_name"] as [FieldPath]])
  func `a database evaluates requests with its own coding`(_ indexes: [FieldPath]) async throws {
    let folder = try TemporaryFolder()
    let database = try SQLiteDatabase(file: folder.url.appendingPathComponent("owners"))
    try await check(SQLiteDataSource(database, store: "owners", of: Owner.self, indexes: indexes))
  }

  @Test func `a store evaluates requests with its own coding`() async throws {
    let server = try TestServer.start(stores: ["owners": "memory"])
    try await check(server.client.dataSource(of: Owner.self, store: "owners"))
  }
}
