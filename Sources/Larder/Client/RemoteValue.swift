import Wire

extension RemoteStore {
  /// Returns the bytes of a single value that are in a range, or nil if the key has no entry. Only these bytes are sent.
  ///
  ///     let header = try await films.get("metropolis", in: 0..<1_024)
  ///
  /// - Parameter range: Offsets in bytes, from 0. Bytes after the end of the value are left out.
  /// - Throws: Also `illegalArgument` if the value is a list or the range begins below 0; `unknownOperation` if the
  ///   server is too old.
  public func get(_ key: String, in range: Range<Int>) async throws(LarderError) -> [UInt8]? {
    try await part(of: key, range, ifRevision: nil)?.bytes
  }

  /// Returns the single value of a key without its bytes, which are read in parts, or nil if the key has no entry. A
  /// value of any size takes little memory this way.
  ///
  ///     guard let film = try await films.value("metropolis") else { return }
  ///     for try await chunk in film.chunks() { try output.write(contentsOf: chunk) }
  ///
  /// - Throws: Also `illegalArgument` if the value is a list; `unknownOperation` if the server is too old.
  public func value(_ key: String) async throws(LarderError) -> RemoteValue? {
    guard let part = try await part(of: key, 0..<0, ifRevision: nil) else { return nil }
    return RemoteValue(
      store: self, key: key, byteCount: part.valueByteCount, revision: part.revision,
      expiresIn: Entry.expiry(milliseconds: part.expiry))
  }

  /// Part of a value.
  fileprivate struct Part {
    let bytes: [UInt8]
    let valueByteCount: Int
    let revision: UInt64
    /// The milliseconds until the entry expires; 0 for an entry that does not expire.
    let expiry: UInt64
  }

  /// Requests part of a value.
  /// - Parameter revision: The revision that the entry must have; nil for any.
  /// - Returns: nil if there is no entry.
  fileprivate func part(
    of key: String, _ range: Range<Int>, ifRevision revision: UInt64?
  ) async throws(LarderError) -> Part? {
    guard range.lowerBound >= 0 else {
      throw LarderError(
        .illegalArgument, outcome: .rejected, "the range begins at \(range.lowerBound); a value begins at 0")
    }
    let request = GetRangeRequest(
      key: key, offset: UInt64(range.lowerBound), count: UInt32(clamping: range.count), ifRevision: revision)
    let body: [UInt8]
    do throws(LarderError) {
      body = try await call(request).body
    } catch {
      guard error.kind == .notFound else { throw error }
      return nil
    }
    guard let reply = unsafe RangeReply(body.span.bytes), let valueByteCount = Int(exactly: reply.valueSize),
      reply.record.value.count <= range.count
    else { throw .malformedReply }
    return Part(
      bytes: Array(body[reply.record.value]), valueByteCount: valueByteCount, revision: reply.record.revision,
      expiry: reply.record.expiry)
  }
}

/// A single value of a store whose bytes are read in parts; see `RemoteStore.value(_:)`.
///
/// All parts belong to the same revision of the entry. Once the entry is overwritten or deleted, or has expired, reading
/// throws `conditionFailed`, because the old value isn't kept for its readers. The value is safe to use from any task,
/// and costs nothing to keep.
public struct RemoteValue: Sendable {
  private let store: RemoteStore
  public let key: String
  /// The size of the value.
  public let byteCount: Int
  /// The revision of the entry.
  public let revision: UInt64
  /// The time until the entry expires, to the millisecond, when the server replied; nil for an entry that does not
  /// expire.
  public let expiresIn: Duration?

  fileprivate init(store: RemoteStore, key: String, byteCount: Int, revision: UInt64, expiresIn: Duration?) {
    self.store = store
    self.key = key
    self.byteCount = byteCount
    self.revision = revision
    self.expiresIn = expiresIn
  }

  /// Returns the bytes in a range, with one request.
  /// - Parameter range: Offsets in bytes, from 0. Bytes after the end of the value are left out.
  /// - Throws: Also `conditionFailed` if the entry does not have this revision any more; `illegalArgument` if the range
  ///   begins below 0.
  public func bytes(in range: Range<Int>) async throws(LarderError) -> [UInt8] {
    guard let part = try await store.part(of: key, range, ifRevision: revision), part.revision == revision,
      part.valueByteCount == byteCount,
      part.bytes.count == range.clamped(to: 0..<byteCount).count
    else { throw .malformedReply }
    return part.bytes
  }

  /// Returns the value's bytes in order, in chunks. Each chunk is requested when it is needed, so at most one is in
  /// memory, and a consumer may take as long as it likes.
  /// - Parameters:
  ///   - range: Offsets in bytes, from 0; nil for the whole value. Bytes after the end of the value are left out.
  ///   - chunkSize: The size of every chunk but the last, in bytes, at least 1.
  public func chunks(in range: Range<Int>? = nil, of chunkSize: Int = 1 << 20) -> Chunks {
    Chunks(value: self, range: range ?? 0..<byteCount, chunkSize: max(1, chunkSize))
  }

  /// The bytes of a value, in chunks that are not empty.
  public struct Chunks: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    private let value: RemoteValue
    private let range: Range<Int>
    private let chunkSize: Int

    fileprivate init(value: RemoteValue, range: Range<Int>, chunkSize: Int) {
      self.value = value
      self.range = range
      self.chunkSize = chunkSize
    }

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(value: value, rest: range, chunkSize: chunkSize)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
      private let value: RemoteValue
      private var rest: Range<Int>
      private let chunkSize: Int

      fileprivate init(value: RemoteValue, rest: Range<Int>, chunkSize: Int) {
        self.value = value
        self.rest = rest
        self.chunkSize = chunkSize
      }

      public mutating func next() async throws(LarderError) -> [UInt8]? {
        try await next(isolation: nil)
      }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> [UInt8]? {
        let end = Swift.min(rest.upperBound, value.byteCount)
        guard rest.lowerBound < end else { return nil }
        let chunk = rest.lowerBound..<rest.lowerBound + Swift.min(chunkSize, end - rest.lowerBound)
        rest = chunk.upperBound..<end
        return try await value.bytes(in: chunk)
      }
    }
  }
}
