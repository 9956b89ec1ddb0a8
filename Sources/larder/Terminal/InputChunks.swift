/// The bytes of a file or of standard input, in chunks, as they are read. It can be read once.
struct InputChunks: AsyncSequence {
  typealias Element = [UInt8]

  /// The size of the largest chunk, in bytes.
  private static let chunkSize = 64 << 10

  private let iterator: AsyncIterator

  /// - Parameter path: The file's path, or `-` for standard input.
  init(path: String) throws {
    iterator = try AsyncIterator(path: path)
  }

  var isTerminal: Bool { iterator.isTerminal }

  func makeAsyncIterator() -> AsyncIterator { iterator }

  final class AsyncIterator: AsyncIteratorProtocol {
    private let file: InputFile

    fileprivate init(path: String) throws {
      file = try InputFile(path: path)
    }

    fileprivate var isTerminal: Bool { file.isTerminal }

    func next() async throws -> [UInt8]? { try await next(isolation: nil) }

    func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? { try readChunk() }

    private func readChunk() throws -> [UInt8]? {
      var chunk = [UInt8](repeating: 0, count: InputChunks.chunkSize)
      let count = try unsafe chunk.withUnsafeMutableBytes { try unsafe file.read(into: $0) }
      chunk.removeLast(chunk.count - count)
      return chunk.isEmpty ? nil : chunk
    }
  }
}
