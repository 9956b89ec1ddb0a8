import DataSources
import Foundation
import Larder
import LarderTesting
import Testing

@Suite struct ValueCodecTests {
  private let server: TestServer

  init() throws { server = try TestServer.start(stores: ["values": "memory"]) }

  /// Puts and gets a value and a list, in generic code.
  /// - Returns: The bytes that the store keeps for the value.
  private func store<T: Codable & Equatable & Sendable>(_ value: T) async throws -> [UInt8]? {
    let source = server.client.dataSource(of: T.self, store: "values")
    try await source.put(value, forId: "single")
    try await source.putAll([value, value], forId: "list")
    #expect(try await source.get("single") == value)
    #expect(try await source.getAll("list") == [value, value])
    let list = try await source.store.get("list")?.value.elements
    let bytes = try await source.store.get("single")?.bytes
    #expect(list?.first == bytes)
    return bytes
  }

  @Test func `bytes, data and text are kept as they are`() async throws {
    #expect(try await store([UInt8]([0, 255, 7])) == [0, 255, 7])
    #expect(try await store(Data([0, 255, 7])) == [0, 255, 7])
    #expect(try await store("héllo \"x\"") == Array("héllo \"x\"".utf8))
    #expect(try await store([UInt8]()) == [])
    #expect(try await store("") == [])
  }

  @Test func `all other values are stored as JSON`() async throws {
    #expect(try await store(7) == Array("7".utf8))
    #expect(try await store([1, 2]) == Array("[1,2]".utf8))
    #expect(try await store(["a"]) == Array("[\"a\"]".utf8))
  }

  @Test func `custom encoders and decoders are used`() async throws {
    let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
    encoder.dateEncodingStrategy = .iso8601
    decoder.dateDecodingStrategy = .iso8601
    let codec = JSONCodec<Date>(encoder: encoder, decoder: decoder)
    let dates = server.client.dataSource(store: "values", codec: codec)
    try await dates.put(Date(timeIntervalSince1970: 0), forId: "epoch")
    #expect(try await dates.store.get("epoch")?.bytes == Array("\"1970-01-01T00:00:00Z\"".utf8))
    #expect(try await dates.get("epoch") == Date(timeIntervalSince1970: 0))
  }

  @Test(arguments: [[], [0xff], Array("{\"title\":".utf8), Array("\"seven\"".utf8), Array("7 7".utf8)])
  func `bytes that can't be decoded are an error`(_ bytes: [UInt8]) async throws {
    let store = server.client.store("values")
    try await store.put("bad", bytes)
    let numbers = server.client.dataSource(of: Int.self, store: "values")
    let error = await #expect(throws: DataSourceError.self) { try await numbers.get("bad") }
    #expect(error?.kind == .dataSerialization && error?.message.contains("bad") == true)
    for try await entry in store.all() { #expect(entry.key == "bad") }
  }

  @Test func `bytes that are not UTF-8 are not a string`() async throws {
    try await server.client.store("values").put("bad", [0xc3, 0x28])
    let texts = server.client.dataSource(of: String.self, store: "values")
    let error = await #expect(throws: DataSourceError.self) { try await texts.get("bad") }
    #expect(error?.kind == .dataSerialization)
  }

  @Test func `a value that can't be encoded is refused, and nothing is written`() async throws {
    let numbers = server.client.dataSource(of: Double.self, store: "values")
    let error = await #expect(throws: DataSourceError.self) {
      try await numbers.putAll([1, .nan], forId: ["a", "b"])
    }
    #expect(error?.kind == .dataSerialization)
    #expect(try await numbers.getAll(AllObjectsQuery()) == [])
  }
}
