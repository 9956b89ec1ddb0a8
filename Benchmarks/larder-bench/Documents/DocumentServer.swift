import Platform

/// A larderd with one store of documents.
final class DocumentServer {
  private let server: RunningServer
  private static let batchCount = 1_000

  /// Starts the server and puts the documents.
  /// - Parameter engine: The store's engine, such as `log?durability=always`.
  init(_ documents: [NumberedDocument], engine: String = "memory", in folder: TemporaryFolder) throws {
    server = try RunningServer(.larder(engine: engine), in: folder, data: folder.makePath("documents"))
    let connection = try connect()
    for first in stride(from: 0, to: documents.count, by: Self.batchCount) {
      try connection.put(documents[first..<min(first + Self.batchCount, documents.count)])
    }
  }

  var address: DocumentAddress { DocumentAddress(address: server.address, store: server.contender.stores[0]) }

  /// The server's CPU time, in nanoseconds.
  var cpuNanoseconds: UInt64 {
    get throws {
      guard let time = Clocks.cpu(ofProcess: server.probe.process) else { throw BenchError("the server has ended") }
      return time
    }
  }

  func connect() throws -> DocumentConnection { try DocumentConnection(to: address) }

  /// Creates indexes and waits until they are complete.
  func buildIndexes(_ indexes: [[String]]) throws {
    let connection = try connect()
    for fields in indexes { try connection.ensureIndex(fields) }
    try connection.waitForIndexes()
  }
}

/// Where documents are.
struct DocumentAddress: Sendable {
  let address: Address
  let store: String
}
