/// The layout of a frame: `Protocol/wire.md` §2.
///
/// This module is no product, and yet its declarations are public: the compiler inlines across modules only what is.
public enum Frame {
  /// Bytes of a frame's header, its length field included.
  @inlinable public static var headerSize: Int { 12 }
  /// Bytes of the length field, which it does not count itself.
  @inlinable public static var lengthSize: Int { 4 }
  /// The least that a length can say: a header without a body.
  @inlinable public static var minLength: Int { headerSize - lengthSize }
  /// The most that a length can say before the hello's reply.
  @inlinable public static var maxSizeBeforeHello: Int { 4_096 }
  /// In a reply's flags: more frames of this answer follow.
  @inlinable public static var more: UInt8 { 1 }
}

/// A frame's header. What `kind` and `detail` are depends on the direction: operation and store handle in a request, outcome and
/// error code in a reply.
public struct FrameHeader: Equatable, Sendable {
  public let bodySize: Int
  public let kind: UInt8
  public let flags: UInt8
  public let detail: UInt16
  public let id: UInt32

  /// Bytes of the whole frame.
  @inlinable public var frameSize: Int { Frame.headerSize &+ bodySize }

  /// Where the frame's body is, when the frame begins at `offset`.
  @inlinable public func body(at offset: Int) -> Range<Int> {
    let start = offset &+ Frame.headerSize
    return unsafe Range(uncheckedBounds: (start, start &+ bodySize))
  }

  @inlinable public init(bodySize: Int, kind: UInt8, flags: UInt8, detail: UInt16, id: UInt32) {
    self.bodySize = bodySize
    self.kind = kind
    self.flags = flags
    self.detail = detail
    self.id = id
  }
}

/// What stands at a place in a stream of frames.
public enum FrameScan: Equatable, Sendable {
  /// A whole frame.
  case frame(FrameHeader)
  /// The beginning of a frame that takes at least so many bytes in all.
  case partial(frameSize: Int)
  /// A length that no frame can have; nothing behind it can be understood.
  case invalid(length: UInt32)

  /// Looks at the frame that begins at `offset`. O(1).
  /// - Parameter largest: the greatest length that is taken.
  @inlinable @inline(__always)
  public init(_ bytes: RawSpan, at offset: Int, largest: Int) {
    guard let length = bytes.integer(at: offset, as: UInt32.self) else {
      self = .partial(frameSize: Frame.headerSize)
      return
    }
    guard length >= Frame.minLength, length <= largest else {
      self = .invalid(length: length)
      return
    }
    let frameSize = Frame.lengthSize &+ Int(length)
    guard frameSize <= bytes.byteCount &- offset else {
      self = .partial(frameSize: frameSize)
      return
    }
    self = unsafe .frame(
      FrameHeader(
        bodySize: frameSize &- Frame.headerSize,
        kind: bytes.unsafeLoad(fromUncheckedByteOffset: offset &+ 4, as: UInt8.self),
        flags: bytes.unsafeLoad(fromUncheckedByteOffset: offset &+ 5, as: UInt8.self),
        detail: UInt16(littleEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset &+ 6, as: UInt16.self)),
        id: UInt32(littleEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset &+ 8, as: UInt32.self))))
  }
}

extension ByteBuffer {
  /// Begins a frame; its body is what is appended until `endFrame`, which fills in the length.
  /// - Returns: what `endFrame` wants back.
  @inlinable @inline(__always)
  public mutating func beginFrame(kind: UInt8, flags: UInt8 = 0, detail: UInt16, id: UInt32) -> Int {
    let start = count
    reserve(Frame.headerSize)
    append(UInt32(0))
    append(UInt32(kind) | UInt32(flags) << 8 | UInt32(detail) << 16)
    append(id)
    return start
  }

  @inlinable @inline(__always)
  public mutating func endFrame(_ start: Int) {
    replace(at: start, with: UInt32(truncatingIfNeeded: count &- start &- Frame.lengthSize))
  }

  @inlinable
  public mutating func beginRequest(_ operation: Operation, store: UInt16 = 0, id: UInt32) -> Int {
    beginFrame(kind: operation.rawValue, detail: store, id: id)
  }

  /// A request without a body.
  @inlinable
  public mutating func appendRequest(_ operation: Operation, store: UInt16 = 0, id: UInt32) {
    endFrame(beginRequest(operation, store: store, id: id))
  }

  /// Begins a reply with outcome *done*.
  @inlinable @inline(__always)
  public mutating func beginReply(id: UInt32, more: Bool = false) -> Int {
    beginFrame(kind: Outcome.done.rawValue, flags: more ? Frame.more : 0, detail: 0, id: id)
  }

  /// A reply with outcome *done* whose body is one number.
  @inlinable @inline(__always)
  public mutating func appendReply(id: UInt32, number: UInt64) {
    let start = beginReply(id: id)
    append(number)
    endFrame(start)
  }

  /// A reply that says that the request was not executed as asked; with id 0, a notice.
  public mutating func appendError(_ code: ErrorCode, id: UInt32, message: String = "") {
    let start = beginFrame(kind: code.outcome.rawValue, detail: code.rawValue, id: id)
    append(message)
    endFrame(start)
  }
}
