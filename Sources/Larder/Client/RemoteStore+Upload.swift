import Wire

extension RemoteStore {
  /// The size of the parts in which a value is uploaded. Every server accepts it.
  private static let uploadPartSize = 64 << 10

  /// Writes a single value that arrives in chunks, such as the contents of a file. It is sent as it arrives, so it takes
  /// little memory, and is written in one step at the end: other clients never see a part of it, and if anything fails,
  /// nothing is written. The next chunk is requested when the server has accepted those before it.
  ///
  ///     try await films.put("metropolis", chunks: file.chunks)
  ///
  /// The store's timeout applies to each part that is sent. A server discards a value if nothing of it arrives for
  /// 5 minutes (by default); if the connection is lost, the call throws.
  /// - Parameters:
  ///   - chunks: The value's bytes, in chunks of any size.
  ///   - condition: The condition under which the entry is written. It is checked at the end.
  ///   - expiresIn: The time until the entry expires, from the end of the call, to the millisecond and at least 1 ms;
  ///     nil for an entry that does not expire.
  /// - Returns: The revision of the entry.
  /// - Throws: Also what the sequence throws; `conditionFailed` if the condition does not hold; `tooManyRequests` if the
  ///   server has too many unfinished uploads; `uploadUnknown` if the connection was lost or the server has discarded the
  ///   value; `unknownOperation` if the server is too old for values of more than 64 KiB.
  @discardableResult
  public func put<Chunks: AsyncSequence>(
    _ key: String, chunks: Chunks, if condition: WriteCondition = .always, expiresIn: Duration? = nil,
    isolation actor: isolated (any Actor)? = #isolation
  ) async throws -> UInt64 where Chunks.Element: Sequence<UInt8> {
    let write = Write(key, [], if: condition, expiresIn: expiresIn)
    _ = try write.expiryMilliseconds()
    var upload: Upload?
    var rest: [UInt8] = []
    do {
      var iterator = chunks.makeAsyncIterator()
      while let chunk = try await iterator.next(isolation: actor) {
        rest.append(contentsOf: chunk)
        guard rest.count > Self.uploadPartSize else { continue }
        if upload == nil { upload = try await beginUpload(UploadBeginRequest(key: key)) }
        var sent = 0
        while rest.count - sent >= Self.uploadPartSize {
          let part = Array(rest[sent..<sent + Self.uploadPartSize])
          try await send(part, to: &upload!)
          sent += part.count
        }
        rest.removeFirst(sent)
      }
      guard upload != nil else { return try await put(Write(key, rest, if: condition, expiresIn: expiresIn)) }
      if !rest.isEmpty { try await send(rest, to: &upload!) }
      let request = try UploadPutRequest(upload!.number, byteCount: upload!.byteCount, write)
      return try await call(request, on: upload!.connection).number
    } catch {
      // Also if the task is cancelled. The server discards it with the connection if this fails.
      if let upload {
        Task { [deadline] in
          _ = try? await upload.connection.call(UploadDiscardRequest(upload.number), deadline: deadline)
        }
      }
      throw error
    }
  }

  /// A value on its way to the server.
  private struct Upload {
    let number: UInt64
    /// The connection that it belongs to.
    let connection: ServerConnection
    /// The size of the parts that have been sent.
    var byteCount = 0
  }

  private func beginUpload(_ request: UploadBeginRequest) async throws(LarderError) -> Upload {
    let (reply, connection) = try await callAnywhere(request)
    return Upload(number: reply.number, connection: connection)
  }

  private func send(_ part: [UInt8], to upload: inout Upload) async throws(LarderError) {
    let request = UploadPartRequest(upload.number, offset: upload.byteCount, bytes: part)
    _ = try await upload.connection.call(request, deadline: deadline)
    upload.byteCount += part.count
  }
}
