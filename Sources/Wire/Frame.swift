/// The layout of a frame: `Protocol/wire.md` §2.
///
/// The declarations of this module are public, although it is no product: the compiler inlines only public declarations
/// across modules.
public enum Frame {
  /// The size of a frame's header in bytes, including the length field.
  @inlinable public static var headerSize: Int { 12 }
  /// The size of the length field in bytes. The length does not include it.
  @inlinable public static var lengthSize: Int { 4 }
  /// The minimum length: that of a frame without a body.
  @inlinable public static var minLength: Int { headerSize - lengthSize }
  /// The maximum length before the reply to the hello.
  @inlinable public static var maxSizeBeforeHello: Int { 4_096 }
  /// The flag of a reply that more frames of the same reply follow.
  @inlinable public static var more: UInt8 { 1 }
}

/// The header of a frame. `kind` and `detail` are the operation and the store handle in a request, and the outcome and
/// the error code in a reply.
public struct FrameHeader: Equatable, Sendable {
  public let bodySize: Int
  public let kind: UInt8
  public let flags: UInt8
  public let detail: UInt16
  public let id: UInt32

  /// The size of the whole frame, in bytes.
  @inlinable public var frameSize: Int { Frame.headerSize &+ bodySize }

  /// Returns the range of the frame's body if the frame begins at `offset`.
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

/// What is at an offset in a stream of frames.
public enum FrameScan: Equatable, Sendable {
  /// A whole frame.
  case frame(FrameHeader)
  /// The beginning of a frame, with the minimum size of the whole frame in bytes.
  case partial(frameSize: Int)
  /// A length that no frame can have. Nothing after it can be decoded.
  case invalid(length: UInt32)

  /// Decodes the header of the frame that begins at `offset`. O(1).
  /// - Parameter maxLength: The maximum length that is accepted.
  @inlinable @inline(__always)
  public init(_ bytes: RawSpan, at offset: Int, maxLength: Int) {
    guard let length = bytes.integer(at: offset, as: UInt32.self) else {
      self = .partial(frameSize: Frame.headerSize)
      return
    }
    guard length >= Frame.minLength, length <= maxLength else {
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
  /// Begins a frame. Its body is what is appended until `endFrame`, which sets the length.
  /// - Returns: The start of the frame, for `endFrame`.
  @inlinable @inline(__always)
  public mutating func beginFrame(kind: UInt8, flags: UInt8 = 0, detail: UInt16, id: UInt32) -> Int {
    let start = count
    reserve(Frame.headerSize)
    append(UInt32(0))
    append(UInt32(kind) | UInt32(flags) << 8 | UInt32(detail) << 16)
    append(id)
    return start
  }

  /// Ends a frame.
  /// - Parameter start: What `beginFrame` returned.
  @inlinable @inline(__always)
  public mutating func endFrame(_ start: Int) {
    endFrame(start, followedBy: 0)
  }

  /// Ends the frame that begins at `start`.
  /// - Parameter byteCount: The size of the rest of the frame, which is not in the buffer.
  @inlinable @inline(__always)
  public mutating func endFrame(_ start: Int, followedBy byteCount: Int) {
    replace(at: start, with: UInt32(truncatingIfNeeded: count &- start &- Frame.lengthSize &+ byteCount))
  }

  /// Begins a request.
  @inlinable
  public mutating func beginRequest(_ operation: Operation, store: UInt16 = 0, id: UInt32) -> Int {
    beginFrame(kind: operation.rawValue, detail: store, id: id)
  }

  /// Appends a request without a body.
  @inlinable
  public mutating func appendRequest(_ operation: Operation, store: UInt16 = 0, id: UInt32) {
    endFrame(beginRequest(operation, store: store, id: id))
  }

  /// Begins a reply with the outcome *done*.
  @inlinable @inline(__always)
  public mutating func beginReply(id: UInt32, more: Bool = false) -> Int {
    beginFrame(kind: Outcome.done.rawValue, flags: more ? Frame.more : 0, detail: 0, id: id)
  }

  /// Appends a reply with the outcome *done* and a number as its body.
  @inlinable @inline(__always)
  public mutating func appendReply(id: UInt32, number: UInt64) {
    let start = beginReply(id: id)
    append(number)
    endFrame(start)
  }

  /// Appends a reply with an error, or with the id 0 a notice.
  public mutating func appendError(_ code: ErrorCode, outcome: Outcome? = nil, id: UInt32, message: String = "") {
    let start = beginFrame(kind: (outcome ?? code.outcome).rawValue, detail: code.rawValue, id: id)
    append(message)
    endFrame(start)
  }
}
