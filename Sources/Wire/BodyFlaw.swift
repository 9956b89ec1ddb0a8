/// Describes what is wrong with the body of a request, for the messages of errors: `Protocol/wire.md` §9.
///
/// A decoder only returns nil, because every request passes through it. These functions look at the body again, and
/// only the reply to an invalid request needs them.
public enum BodyFlaw {
  /// The flaw of a body that must be empty, and isn't.
  public static func ofEmpty(_ body: RawSpan) -> String { "the body must be empty, but has \(bytes(body.byteCount))" }

  /// The flaw of a body that doesn't begin with, or isn't, an integer.
  public static func ofInteger(_ body: RawSpan, byteCount: Int, fills: Bool = false) -> String {
    "the body must \(fills ? "be" : "begin with") an integer of \(bytes(byteCount)), but has \(bytes(body.byteCount))"
  }

  /// The flaw of a hello.
  public static func ofHello(_ body: RawSpan) -> String {
    guard let lowest = body.integer(at: 4, as: UInt16.self), let highest = body.integer(at: 6, as: UInt16.self),
      let credit = body.integer(at: 12, as: UInt32.self), let nameSize = body.integer(at: 16, as: UInt16.self)
    else { return "the body of a hello must have at least 18 bytes, but has \(bytes(body.byteCount))" }
    if lowest > highest { return "the lowest version, \(lowest), is above the highest, \(highest)" }
    if credit == 0 { return "the credit of a hello must not be 0" }
    if nameSize > ClientHello.maxNameSize {
      return "the client's name has \(bytes(Int(nameSize))); the limit is \(ClientHello.maxNameSize)"
    }
    let nameEnd = 18 + Int(nameSize)
    guard nameEnd <= body.byteCount, let features = body.integer(at: 8, as: UInt32.self),
      features & Features.tokens != 0, let tokenSize = body.integer(at: nameEnd, as: UInt16.self)
    else { return sizes(nameEnd, body) }
    if tokenSize > ClientHello.maxTokenSize {
      return "the token has \(bytes(Int(tokenSize))); the limit is \(ClientHello.maxTokenSize)"
    }
    return sizes(nameEnd + 2 + Int(tokenSize), body)
  }

  /// The flaw of a key that isn't valid.
  public static func ofKey(_ key: RawSpan) -> String {
    if key.byteCount == 0 { return "a key must not be empty" }
    if key.byteCount > Key.maxSize { return "the key has \(bytes(key.byteCount)); the limit is \(Key.maxSize)" }
    return "the key is not valid UTF-8"
  }

  /// The flaw of a key list.
  public static func ofKeyList(_ body: RawSpan) -> String {
    guard var keys = KeyList(body) else { return ofInteger(body, byteCount: 4) }
    while keys.next(body) != nil {}
    guard keys.remaining == 0 else {
      return "the body ends inside key \(keys.count - keys.remaining + 1) of \(keys.count)"
    }
    return trailing(body.byteCount - keys.offset)
  }

  // MARK: Records

  /// The flaw of a body in which the write record at `offset` can't be decoded, or is followed by other bytes.
  public static func ofWrite(_ body: RawSpan, at offset: Int) -> String {
    record(body, at: offset) { kind in
      guard ValueKind(rawValue: kind) != nil else { return nil }
      return (RecordFlags.expiry | RecordFlags.ifAbsent | RecordFlags.ifRevision, true)
    }
  }

  /// The flaw of a body in which the operation of an apply at `offset` can't be decoded, or is followed by other bytes.
  public static func ofApply(_ body: RawSpan, at offset: Int) -> String {
    record(body, at: offset) { kind in ApplyRecord.Kind(rawValue: kind).map { ($0.allowedFlags, $0.hasValue) } }
  }

  /// - Parameter properties: Returns which flags a record of a kind may have, and whether it has a value; nil for an
  ///   unknown kind.
  private static func record(
    _ body: RawSpan, at offset: Int, _ properties: (UInt8) -> (flags: UInt8, hasValue: Bool)?
  ) -> String {
    let left = body.byteCount - offset
    if left == 0 { return "the body ends where a record is expected" }
    guard let word = body.integer(at: offset, as: UInt64.self) else {
      return "the record at byte \(offset) of the body has \(bytes(left)), but needs at least 8"
    }
    let kind = UInt8(truncatingIfNeeded: word)
    let flags = UInt8(truncatingIfNeeded: word >> 8)
    let keySize = Int(UInt16(truncatingIfNeeded: word >> 16))
    let valueSize = Int(word >> 32)
    guard let properties = properties(kind) else {
      return "the record at byte \(offset) of the body has the unknown kind \(kind)"
    }
    if flags & ~properties.flags != 0 {
      return "the record at byte \(offset) of the body, of kind \(kind), has invalid flags: \(flags)"
    }
    if !properties.hasValue, valueSize > 0 {
      return "the record at byte \(offset) of the body, of kind \(kind), can't have a value"
    }
    let size =
      8 + (flags & RecordFlags.expiry == 0 ? 0 : 8) + (flags & RecordFlags.ifRevision == 0 ? 0 : 8) + keySize
      + valueSize
    if size > left {
      return
        "the record at byte \(offset) of the body takes \(bytes(size)), of which the key takes \(keySize) and the value "
        + "\(valueSize), but the body has only \(left) more"
    }
    return trailing(left - size)
  }

  /// The flaw of a body that goes on after its last field.
  public static func trailing(_ byteCount: Int) -> String {
    "the body has \(bytes(byteCount)) after its last field"
  }

  // MARK: Sizes

  /// The flaw of the body of a page or all request.
  public static func ofScan(_ body: RawSpan, of operation: Operation) -> String {
    let header = operation == .page ? 20 : 8
    guard let flags = body.integer(at: 0, as: UInt8.self), let prefix = body.integer(at: 2, as: UInt16.self),
      let cursor = body.integer(at: 4, as: UInt16.self), body.byteCount >= header
    else { return tooShort(body, header) }
    if flags >= 8 { return "unknown flags: \(flags)" }
    if flags & ScanRequest.cursor == 0, cursor > 0 { return "a cursor needs bit 2 of the flags" }
    if body.integer(at: 1, as: UInt8.self) != 0 || body.integer(at: 6, as: UInt16.self) != 0 { return notZero }
    return sizes(header + Int(prefix) + Int(cursor), body)
  }

  /// The flaw of the body of a get-range request.
  public static func ofRange(_ body: RawSpan) -> String {
    let header = RangeRequest.headerSize
    guard let flags = body.integer(at: 0, as: UInt32.self), body.byteCount >= header else {
      return tooShort(body, header)
    }
    if flags & 0xFF & ~UInt32(RecordFlags.ifRevision) != 0 { return "unknown flags: \(flags & 0xFF)" }
    if flags >> 8 != 0 { return notZero }
    return tooShort(body, header + 8)
  }

  /// The flaw of the body of an upload-part request.
  public static func ofUploadPart(_ body: RawSpan) -> String { tooShort(body, UploadPart.headerSize) }

  /// The flaw of the body of an upload-put request.
  public static func ofUploadPut(_ body: RawSpan) -> String {
    guard body.byteCount >= UploadPut.headerSize else { return tooShort(body, UploadPut.headerSize) }
    return record(body, at: UploadPut.headerSize) { kind in
      guard ValueKind(rawValue: kind) != nil else { return nil }
      return (RecordFlags.expiry | RecordFlags.ifAbsent | RecordFlags.ifRevision, false)
    }
  }

  /// The flaw of the body of a watch request.
  public static func ofWatch(_ body: RawSpan) -> String {
    guard let flags = body.integer(at: 0, as: UInt8.self), let prefix = body.integer(at: 2, as: UInt16.self),
      body.byteCount >= WatchRequest.headerSize
    else { return tooShort(body, WatchRequest.headerSize) }
    if flags & ~(WatchRequest.keysOnly | WatchRequest.incarnation) != 0 { return "unknown flags: \(flags)" }
    if body.integer(at: 1, as: UInt8.self) != 0 || body.integer(at: 4, as: UInt32.self) != 0 { return notZero }
    return sizes(WatchRequest.prefixOffset(flags) + Int(prefix), body)
  }

  /// The flaw of the body of a find, aggregate or change-matching request.
  public static func ofDocuments(_ body: RawSpan, of operation: Operation) -> String {
    let header = operation == .find ? FindRequest.headerSize : AggregateRequest.headerSize
    guard body.byteCount >= header, let flags = body.integer(at: 0, as: UInt8.self) else {
      return tooShort(body, header)
    }
    let allowed: UInt8 =
      switch operation {
      case .find: 15
      case .changeMatching: 7
      default: 3
      }
    if flags & ~allowed != 0 { return "unknown flags: \(flags)" }
    let timeFlag =
      switch operation {
      case .find: FindRequest.time
      case .changeMatching: ChangeMatchingRequest.time
      default: UInt8(AggregateRequest.time)
      }
    let texts = header + (flags & timeFlag == 0 ? 0 : 4)
    func size(at offset: Int) -> Int { body.integer(at: offset, as: UInt32.self).map { Int($0) } ?? 0 }
    guard operation == .find else {
      if size(at: 0) >> 8 != 0 { return notZero }
      let end = texts + size(at: 4)
      guard end <= body.byteCount else { return sizes(end, body) }
      if texts > header, size(at: header) == 0 { return noTime }
      return flags & 2 == 0 ? "the update is missing" : "a deletion can't have an update"
    }
    if body.integer(at: 1, as: UInt8.self) != 0 { return notZero }
    if flags & FindRequest.limit == 0, size(at: 4) != 0 { return "a limit needs bit 1 of the flags" }
    let index = body.integer(at: 2, as: UInt16.self).map { Int($0) } ?? 0
    if texts > header, body.byteCount >= texts, size(at: header) == 0 { return noTime }
    return sizes(texts + size(at: 16) + size(at: 20) + size(at: 24) + size(at: 28) + index, body)
  }

  private static let noTime = "the time limit of the request is zero"
  private static let notZero = "a field that must be zero is not"

  private static func tooShort(_ body: RawSpan, _ byteCount: Int) -> String {
    "the body must have at least \(bytes(byteCount)), but has \(body.byteCount)"
  }

  private static func sizes(_ expected: Int, _ body: RawSpan) -> String {
    "the sizes in the body require \(bytes(expected)), but it has \(body.byteCount)"
  }

  private static func bytes(_ count: Int) -> String { count == 1 ? "1 byte" : "\(count) bytes" }
}
