import Storage
import Wire

/// Values that arrive in parts: `Protocol/wire.md` §6.13. Only the put runs under a store's lock.
extension RequestProcessor {
  mutating func beginUpload(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard body.byteCount == 0 else { return replies.fail(.malformed, id, BodyFlaw.ofEmpty(body)) }
    guard connection.uploads.count < ValueUpload.maxCount else {
      return replies.fail(.tooManyRequests, id, "the connection has \(ValueUpload.maxCount) uploads already")
    }
    let upload = ValueUpload(server.buffers, for: connection.sharer, now: now) { [mailbox] in
      mailbox.postRevokedShare()
    }
    connection.uploads.append(upload)
    replies.bytes.appendReply(id: id, number: upload.number)
    return RequestResult()
  }

  mutating func addUploadPart(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard let part = UploadPart(body) else { return replies.fail(.malformed, id, BodyFlaw.ofUploadPart(body)) }
    guard let upload = connection.uploads.first(where: { $0.number == part.number }) else {
      return failUpload(part.number, id, into: &replies)
    }
    guard part.offset == upload.byteCount else {
      return replies.fail(
        .illegalArgument, id, "the part begins at byte \(part.offset), and the upload has \(upload.byteCount) bytes")
    }
    guard part.bytes.count <= maxValueSize - upload.byteCount else {
      return replies.fail(
        .valueTooLarge, id,
        "with the part, the value has \(upload.byteCount + part.bytes.count) bytes; the limit is \(maxValueSize)")
    }
    guard !server.memory.isExhausted else {
      return replies.fail(.tooManyRequests, id, "the server has reached its memory limit; try again later")
    }
    guard upload.append(body.extracting(part.bytes), now: now) else {
      return replies.fail(
        .tooManyRequests, id,
        "the server has too many incomplete uploads, and no other client has more of them; try again later")
    }
    return succeed(id, into: &replies)
  }

  mutating func discardUpload(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard body.byteCount == 8, let number = body.integer(at: 0, as: UInt64.self) else {
      return replies.fail(.malformed, id, BodyFlaw.ofInteger(body, byteCount: 8, fills: true))
    }
    guard let index = connection.uploads.firstIndex(where: { $0.number == number }) else {
      return failUpload(number, id, into: &replies)
    }
    connection.uploads.remove(at: index)
    return succeed(id, into: &replies)
  }

  /// Writes an entry whose value has been uploaded. If it is not written, the upload stays.
  mutating func putUpload(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let request = UploadPut(body) else { return replies.fail(.malformed, id, BodyFlaw.ofUploadPut(body)) }
    guard let index = connection.uploads.firstIndex(where: { $0.number == request.number }) else {
      return failUpload(request.number, id, into: &replies)
    }
    let upload = connection.uploads[index]
    guard request.size == upload.byteCount else {
      return replies.fail(
        .illegalArgument, id, "the upload has \(upload.byteCount) bytes, not \(request.size): parts are missing")
    }
    let write = request.write
    if let code = write.error(in: body, maxValueSize: maxValueSize) {
      return replies.fail(code, id, flaw(code, of: write, in: body))
    }
    let value = unsafe RawSpan(_unsafeBytes: upload.bytes)
    if write.kind == .list, !ListValue.isValid(value) {
      return replies.fail(.dataSerialization, id, flaw(.dataSerialization, of: write, in: body))
    }
    let key = body.extracting(write.key)
    guard meetsCondition(write, key, &map) else {
      return replies.fail(.conditionFailed, id, WriteCondition(write).failure(actual: map.get(key, now: now)?.revision))
    }
    if value.byteCount >= AttachedValue.minSize, map.evictBriefly(for: value.byteCount, at: key, now: now) {
      return .deferred
    }
    let revision = map.revision + 1
    try store(write, key, value, revision: revision, &map)
    connection.uploads.remove(at: index)
    replies.bytes.appendReply(id: id, number: revision)
    return RequestResult()
  }

  private func failUpload(_ number: UInt64, _ id: UInt32, into replies: inout ReplyBuffer) -> RequestResult {
    replies.fail(
      .uploadUnknown, id,
      """
      no upload \(number) is open on this connection; one without a part for \(limits.frameTime) (limits.frame-time) is \
      discarded, and so is one that takes longer than \(limits.uploadTime) (limits.upload-time), or whose memory clients \
      with fewer uploads need
      """)
  }

  // MARK: Uploads that end

  /// The earliest time, in milliseconds, at which an upload of a connection is discarded unless something happens; nil if
  /// there is none.
  func uploadDeadline(of connection: borrowing Connection) -> UInt64? {
    connection.uploads.map { $0.deadline(limits) }.min()
  }

  /// Discards the uploads that have received nothing for too long, or take too long.
  func discardOverdueUploads(of connection: inout Connection) {
    connection.uploads.removeAll { $0.deadline(limits) <= now }
  }

  /// Discards the uploads that have to give up their memory to other clients.
  func discardRevokedUploads(of connection: inout Connection) { connection.uploads.removeAll(where: \.isRevoked) }
}
