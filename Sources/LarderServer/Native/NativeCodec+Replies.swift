import Storage
import Wire

/// Outcomes become replies: `Protocol/wire.md` §4 to §6.
extension NativeCodec {
  /// The maximum size of an error's message, in bytes. A longer one is truncated.
  private static let maxMessageSize = 1_024
  /// The size of a frame's body, in bytes, at which a stream begins a new frame.
  private static let maxStreamBody = 65_536

  @inline(__always)
  static func append(_ outcome: CommandOutcome, to request: UInt32, now: UInt64, into replies: inout ReplyBuffer) {
    switch outcome {
    case .entry(let entry): append(entry, to: request, now: now, into: &replies)
    case .number(let number): replies.bytes.appendReply(id: request, number: number)
    case .absent: replies.bytes.appendError(.notFound, id: request)
    case .range(let entry, let range):
      let start = replies.bytes.beginReply(id: request)
      replies.bytes.append(UInt64(entry.valueByteCount))
      append(entry, valueRange: range, now: now, into: &replies)
      replies.bytes.endFrame(start)
    }
  }

  static func append(_ outcome: LateOutcome, to request: UInt32, into replies: inout ReplyBuffer) {
    let start = replies.bytes.beginReply(id: request)
    switch outcome {
    case .done, .failure: break
    case .number(let number): replies.bytes.append(number)
    case .changed(let changes): replies.bytes.append(changes)
    case .ensured(let index): replies.bytes.append(index)
    }
    replies.bytes.endFrame(start)
  }

  static func append(_ failure: CommandFailure, to request: UInt32?, into bytes: inout ByteBuffer) {
    // A long message is truncated: some repeat what the client sent, which may be as long as a frame, and three times as
    // long once it is UTF-8.
    let message = failure.message
    let isShort = message.utf8.count <= maxMessageSize
    bytes.appendError(
      failure.code, outcome: failure.outcome, id: request ?? 0,
      message: isShort ? message : String(message.prefix(maxMessageSize / 4)) + " …")
  }

  // MARK: Entries

  /// Appends a reply with an entry, whose key is not in it. A large value in memory is attached.
  @inline(__always)
  private static func append(_ entry: EntryView, to request: UInt32, now: UInt64, into replies: inout ReplyBuffer) {
    let start = replies.bytes.beginReply(id: request)
    if entry.valueByteCount >= AttachedValue.minSize, let value = entry.largeValue {
      unsafe appendHeader(of: entry, key: noBytes, valueSize: value.byteCount, now: now, into: &replies)
      replies.bytes.endFrame(start, followedBy: value.byteCount)
      replies.attach(value)
    } else {
      append(entry, hasKey: false, hasValue: true, now: now, into: &replies)
      replies.bytes.endFrame(start)
    }
  }

  /// Appends the record of an entry. Expiry is sent as the remaining time.
  @inline(__always)
  private static func append(
    _ entry: EntryView, hasKey: Bool, hasValue: Bool, now: UInt64, into replies: inout ReplyBuffer
  ) {
    let key = unsafe hasKey ? entry.key : noBytes
    if let value = unsafe hasValue ? entry.value : noBytes {
      unsafe replies.bytes.appendEntry(
        kind: ValueKind(entry.kind), revision: entry.revision, expiry: entry.lifetime(at: now), key: key, value: value)
    } else if let value = entry.separatedValue {
      unsafe appendHeader(of: entry, key: key, valueSize: entry.valueByteCount, now: now, into: &replies)
      unsafe replies.leaveRoom(for: value, key: entry.key)
    }
  }

  /// Appends the record of an entry with a part of its value.
  private static func append(
    _ entry: EntryView, valueRange: Range<Int>, now: UInt64, into replies: inout ReplyBuffer
  ) {
    unsafe appendHeader(of: entry, key: noBytes, valueSize: valueRange.count, now: now, into: &replies)
    if let value = unsafe entry.value {
      unsafe replies.bytes.append(UnsafeRawBufferPointer(rebasing: value[valueRange]))
    } else if !valueRange.isEmpty, let value = entry.separatedValue {
      unsafe replies.leaveRoom(for: value.part(valueRange), key: entry.key)
    }
  }

  private static func appendHeader(
    of entry: EntryView, key: UnsafeRawBufferPointer, valueSize: Int, now: UInt64, into replies: inout ReplyBuffer
  ) {
    unsafe replies.bytes.appendEntryHeader(
      kind: ValueKind(entry.kind), revision: entry.revision, expiry: entry.lifetime(at: now), key: key,
      valueSize: valueSize)
  }

  private static var noBytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: nil, count: 0) }

  // MARK: Streams

  static func beginPart(
    of request: UInt32, isFirst: Bool, through throughRevision: UInt64?, _ limits: borrowing ServerLimits,
    into replies: inout ReplyBuffer
  ) -> StreamPart {
    let start = replies.bytes.beginReply(id: request)
    if let throughRevision { replies.bytes.append(throughRevision) }
    let maxBody = min(maxStreamBody, limits.maxBodyBytes)
    return StreamPart(
      tag: request, isFirst: isFirst, start: start, payloadStart: start + Frame.headerSize,
      recordsStart: replies.bytes.count, maxEnd: start + Frame.headerSize + maxBody)
  }

  static func end(
    _ part: StreamPart, through throughRevision: UInt64?, isLast: Bool, into replies: inout ReplyBuffer
  ) {
    if let throughRevision { replies.bytes.replace(at: part.start + Frame.headerSize, with: throughRevision) }
    if !isLast { replies.bytes.replace(at: part.start + 5, with: Frame.more) }
    replies.bytes.endFrame(part.start)
  }

  @inline(__always)
  static func append(
    _ entry: EntryView?, hasKey: Bool, hasValue: Bool, to part: StreamPart, now: UInt64, into replies: inout ReplyBuffer
  ) -> Bool {
    guard let entry else {
      guard part.fits(EntryRecord.headerSize, in: replies) else { return false }
      replies.bytes.appendMissingEntry()
      return true
    }
    let size =
      unsafe EntryRecord.headerSize + (entry.expiry == 0 ? 0 : 8) + (hasKey ? entry.key.count : 0)
      + (hasValue ? entry.valueByteCount : 0)
    guard part.fits(size, in: replies) else { return false }
    append(entry, hasKey: hasKey, hasValue: hasValue, now: now, into: &replies)
    return true
  }

  static func append(_ record: StreamRecord, to part: StreamPart, into replies: inout ReplyBuffer) -> Bool {
    guard part.fits(size(of: record), in: replies) else { return false }
    switch record {
    case .object(let key, let value, let revision, let lifetime):
      unsafe key.withUnsafeBytes { key in
        unsafe value.withUnsafeBytes { value in
          unsafe replies.bytes.appendEntry(
            kind: .single, revision: revision, expiry: lifetime, key: key, value: value)
        }
      }
    case .row(let row):
      unsafe row.withUnsafeBytes { row in
        unsafe replies.bytes.appendEntry(kind: .single, revision: 0, expiry: 0, key: noBytes, value: row)
      }
    case .result(let result): replies.bytes.append(result)
    case .change(let change, let hasValue, let lifetime):
      unsafe replies.bytes.appendChange(
        ChangeKind(change.kind), revision: change.revision, expiry: lifetime,
        changesOnlyExpiry: change.effect == .expiry, key: change.key, value: hasValue ? change.value : noBytes)
    case .incarnation(let incarnation):
      unsafe replies.bytes.appendChange(.incarnation, revision: incarnation, key: noBytes, value: noBytes)
    case .lost(let revision):
      unsafe replies.bytes.appendChange(.lost, revision: revision, key: noBytes, value: noBytes)
    }
    return true
  }

  /// Returns the size of a record, in bytes.
  private static func size(of record: StreamRecord) -> Int {
    switch record {
    case .object(let key, let value, _, let lifetime):
      EntryRecord.headerSize + (lifetime == 0 ? 0 : 8) + key.count + value.count
    case .row(let row): EntryRecord.headerSize + row.count
    case .result(let result): result.size
    case .change(let change, let hasValue, let lifetime):
      unsafe ChangeRecord.headerSize + (lifetime == 0 ? 0 : 8) + change.key.count
        + (hasValue ? change.value.count : 0)
    case .incarnation, .lost: 0
    }
  }
}

extension EntryView {
  /// The milliseconds until it expires; 0 for never.
  @inline(__always)
  fileprivate func lifetime(at now: UInt64) -> UInt64 { expiry == 0 ? 0 : expiry &- now }
}
