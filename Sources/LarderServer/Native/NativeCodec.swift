import Storage
import Wire

/// Serves clients that speak Larder's own protocol.
struct NativeSession: Session {
  typealias C = NativeCodec
}

/// Larder's own protocol: `Protocol/wire.md`.
enum NativeCodec: Codec {
  static var hasGreeting: Bool { true }
  static var isOrdered: Bool { false }

  // MARK: Requests

  @inline(__always)
  static func scan(_ bytes: RawSpan, at offset: Int, maxSize: Int) -> RequestScan<FrameHeader> {
    switch FrameScan(bytes, at: offset, maxLength: maxSize) {
    case .frame(let header): .request(header)
    case .partial(let size): .partial(size: size)
    case .invalid(let length):
      .invalid(CommandFailure(.frameLength, "frame length \(length) is outside \(Frame.minLength)…\(maxSize)"))
    }
  }

  @inline(__always)
  static func maxRequestSize(_ limits: borrowing ServerLimits, isStranger: Bool) -> Int {
    isStranger ? Frame.maxSizeBeforeHello : limits.maxFrameBytes
  }

  @inline(__always)
  static func key(of request: FrameHeader, _ bytes: RawSpan) -> Range<Int>? {
    if request.kind == Operation.get.rawValue, bytes.byteCount <= Key.maxSize { return 0..<bytes.byteCount }
    if request.kind == Operation.put.rawValue, let write = WriteRecord(bytes, at: 0) { return write.key }
    return nil
  }

  @inline(__always)
  static func soleKey(of request: FrameHeader, _ bytes: RawSpan) -> Range<Int>? { key(of: request, bytes) }

  @inline(__always)
  static func command(of request: FrameHeader, _ bytes: RawSpan) throws(CommandFailure) -> Command {
    // The most frequent ones first.
    if request.kind == Operation.get.rawValue { return .get(key: 0..<bytes.byteCount) }
    return try otherCommand(of: request, bytes)
  }

  private static func otherCommand(of request: FrameHeader, _ bytes: RawSpan) throws(CommandFailure) -> Command {
    if request.kind == Operation.put.rawValue, let write = WriteRecord(bytes, at: 0), write.end == bytes.byteCount {
      return .put(write)
    }
    return try rareCommand(of: request, bytes)
  }

  @inline(never)
  private static func rareCommand(of request: FrameHeader, _ bytes: RawSpan) throws(CommandFailure) -> Command {
    switch Operation(rawValue: request.kind) {
    case .put: throw malformed(BodyFlaw.ofWrite(bytes, at: 0))
    case .getRange:
      guard let range = RangeRequest(bytes) else { throw malformed(BodyFlaw.ofRange(bytes)) }
      return .getRange(range)
    case .getMany:
      guard let keys = KeyList(bytes) else { throw malformed(BodyFlaw.ofKeyList(bytes)) }
      return .getMany(keys)
    case .putMany: return .putMany(count: try count(bytes))
    case .delete: return try delete(bytes)
    case .deleteMany:
      guard let keys = KeyList(bytes) else { throw malformed(BodyFlaw.ofKeyList(bytes)) }
      return .deleteMany(keys)
    case .deleteAll:
      try checkEmpty(bytes)
      return .deleteAll
    case .count: return .count(prefix: 0..<bytes.byteCount)
    case .page: return .scan(try scan(bytes, of: .page), isPage: true)
    case .all: return .scan(try scan(bytes, of: .all), isPage: false)
    case .watch:
      guard let watch = WatchRequest(bytes) else { throw malformed(BodyFlaw.ofWatch(bytes)) }
      return .watch(watch)
    case .apply: return .apply(count: try count(bytes))
    case .uploadPut:
      guard let upload = UploadPut(bytes) else { throw malformed(BodyFlaw.ofUploadPut(bytes)) }
      return .putUpload(upload)
    default: throw CommandFailure(.unknownOperation)
    }
  }

  private static func delete(_ bytes: RawSpan) throws(CommandFailure) -> Command {
    guard let flags = bytes.integer(at: 0, as: UInt8.self) else {
      throw malformed(BodyFlaw.ofInteger(bytes, byteCount: 1))
    }
    guard flags & ~RecordFlags.ifRevision == 0 else { throw malformed("a delete has invalid flags: \(flags)") }
    if flags == 0 { return .delete(key: 1..<bytes.byteCount, EntryCondition()) }
    guard let revision = bytes.integer(at: 1, as: UInt64.self) else {
      throw malformed("the body ends before the revision")
    }
    return .delete(key: 9..<bytes.byteCount, EntryCondition(ifAbsent: false, ifRevision: revision))
  }

  private static func scan(_ bytes: RawSpan, of operation: Operation) throws(CommandFailure) -> ScanRequest {
    guard let scan = ScanRequest(bytes, of: operation) else { throw malformed(BodyFlaw.ofScan(bytes, of: operation)) }
    return scan
  }

  /// Decodes the number of records that a body begins with.
  private static func count(_ bytes: RawSpan) throws(CommandFailure) -> Int {
    guard let count = bytes.integer(at: 0, as: UInt32.self) else {
      throw malformed(BodyFlaw.ofInteger(bytes, byteCount: 4))
    }
    return Int(count)
  }

  static func checkEmpty(_ bytes: RawSpan) throws(CommandFailure) {
    guard bytes.byteCount == 0 else { throw malformed(BodyFlaw.ofEmpty(bytes)) }
  }

  static func malformed(_ message: String) -> CommandFailure { CommandFailure(.malformed, message) }
}

extension FrameHeader: EncodedRequest {
  @inline(__always)
  var size: Int { frameSize }
  @inline(__always)
  var tag: UInt32 { id }
  @inline(__always)
  var operation: UInt8 { kind }
  @inline(__always)
  var store: UInt16 { detail }
  @inline(__always)
  var isRegular: Bool { flags == 0 && id != 0 }
}
