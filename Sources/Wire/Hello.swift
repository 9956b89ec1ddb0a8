/// The versions of the protocol that this code supports: `Protocol/wire.md` §3.
public enum ProtocolVersion {
  public static let min: UInt16 = 1
  public static let max: UInt16 = 1
}

/// Features that a hello announces: `Protocol/wire.md` §3.
public enum Features {
  /// Documents: finding, changing and aggregating them, their indexes, and applies.
  public static let documents: UInt32 = 1
  /// Reading part of a value.
  public static let ranges: UInt32 = 2
  /// Writing a value that arrives in parts.
  public static let uploads: UInt32 = 4
  /// Watches that follow one incarnation of a store.
  public static let incarnations: UInt32 = 8
  /// Requests on documents that say how long they may take.
  public static let times: UInt32 = 16
  /// Aggregations that are explained.
  public static let groupExplanations: UInt32 = 32
  /// A client's hello with a token.
  public static let tokens: UInt32 = 64
  /// Asking what a client may do.
  public static let rights: UInt32 = 128
  /// Stores that several servers share: who serves them, and moving them.
  public static let clusters: UInt32 = 256
  /// Links to the console.
  public static let consoles: UInt32 = 512

  /// All features that this code supports.
  public static let all =
    documents | ranges | uploads | incarnations | times | groupExplanations | tokens | rights | clusters | consoles
}

/// A client's hello: `Protocol/wire.md` §3.
public struct ClientHello: Equatable, Sendable {
  public static let magic: UInt32 = 0x5244_524C  // "LRDR", little-endian
  /// The maximum size of a client's name, in bytes.
  public static let maxNameSize = 255
  /// The maximum size of a token, in bytes.
  public static let maxTokenSize = 255

  public var versions: ClosedRange<UInt16>
  public var features: UInt32
  /// The bytes of each reply stream that the server may send before it gets more credit.
  public var credit: UInt32
  public var name: String
  /// By what the client proves who it is; empty for nothing. Only a hello with the feature `tokens` has it.
  public var token: String

  public init(
    versions: ClosedRange<UInt16> = ProtocolVersion.min...ProtocolVersion.max, features: UInt32 = 0,
    credit: UInt32, name: String, token: String = ""
  ) {
    self.versions = versions
    self.features = features
    self.credit = credit
    self.name = name
    self.token = token
  }

  /// The reasons why the body of a hello could not be decoded.
  public enum FormatError: Error, Equatable, Sendable {
    case noMagic
    case malformed
  }

  /// Decodes the body of a hello.
  public init(body: RawSpan) throws(FormatError) {
    guard body.integer(at: 0, as: UInt32.self) == Self.magic else { throw .noMagic }
    guard
      let minVersion = body.integer(at: 4, as: UInt16.self), let maxVersion = body.integer(at: 6, as: UInt16.self),
      minVersion <= maxVersion,
      let features = body.integer(at: 8, as: UInt32.self),
      let credit = body.integer(at: 12, as: UInt32.self), credit > 0,
      let nameSize = body.integer(at: 16, as: UInt16.self), nameSize <= Self.maxNameSize,
      Int(nameSize) <= body.byteCount - 18
    else { throw .malformed }
    self.versions = minVersion...maxVersion
    self.features = features
    self.credit = credit
    let nameEnd = 18 + Int(nameSize)
    self.name = body.extracting(18..<nameEnd).toString()
    token = ""
    guard features & Features.tokens != 0 else { return }
    guard let tokenSize = body.integer(at: nameEnd, as: UInt16.self), tokenSize <= Self.maxTokenSize,
      Int(tokenSize) <= body.byteCount - nameEnd - 2
    else { throw .malformed }
    token = body.extracting(nameEnd + 2..<nameEnd + 2 + Int(tokenSize)).toString()
  }
}

/// A server's reply to a hello: `Protocol/wire.md` §3.
public struct ServerHello: Equatable, Sendable {
  public var version: UInt16
  public var features: UInt32
  public var maxFrameSize: UInt32
  public var maxValueSize: UInt32
  public var maxKeySize: UInt16
  public var maxOpenStores: UInt16
  public var maxRequestsInFlight: UInt32
  public var maxKeyCount: UInt32
  public var name: String

  public init(
    version: UInt16 = ProtocolVersion.max, features: UInt32 = 0, maxFrameSize: UInt32, maxValueSize: UInt32,
    maxKeySize: UInt16,
    maxOpenStores: UInt16, maxRequestsInFlight: UInt32, maxKeyCount: UInt32, name: String
  ) {
    self.version = version
    self.features = features
    self.maxFrameSize = maxFrameSize
    self.maxValueSize = maxValueSize
    self.maxKeySize = maxKeySize
    self.maxOpenStores = maxOpenStores
    self.maxRequestsInFlight = maxRequestsInFlight
    self.maxKeyCount = maxKeyCount
    self.name = name
  }

  /// Decodes the body of the reply, or returns nil if it is malformed.
  public init?(body: RawSpan) {
    guard
      let version = body.integer(at: 0, as: UInt16.self), let features = body.integer(at: 4, as: UInt32.self),
      let maxFrameSize = body.integer(at: 8, as: UInt32.self), let maxValueSize = body.integer(at: 12, as: UInt32.self),
      let maxKeySize = body.integer(at: 16, as: UInt16.self),
      let maxOpenStores = body.integer(at: 18, as: UInt16.self),
      let maxRequestsInFlight = body.integer(at: 20, as: UInt32.self),
      let maxKeyCount = body.integer(at: 24, as: UInt32.self),
      let nameSize = body.integer(at: 28, as: UInt16.self), Int(nameSize) <= body.byteCount - 30
    else { return nil }
    self.init(
      version: version, features: features, maxFrameSize: maxFrameSize, maxValueSize: maxValueSize,
      maxKeySize: maxKeySize,
      maxOpenStores: maxOpenStores, maxRequestsInFlight: maxRequestsInFlight, maxKeyCount: maxKeyCount,
      name: body.extracting(30..<30 + Int(nameSize)).toString())
  }
}

extension ByteBuffer {
  /// Appends a client's hello.
  /// - Precondition: The name and the token have at most 255 bytes each.
  public mutating func appendRequest(_ hello: ClientHello, id: UInt32) {
    precondition(hello.name.utf8.count <= ClientHello.maxNameSize)
    precondition(hello.token.utf8.count <= ClientHello.maxTokenSize)
    let start = beginRequest(.hello, id: id)
    append(ClientHello.magic)
    append(hello.versions.lowerBound)
    append(hello.versions.upperBound)
    append(hello.features)
    append(hello.credit)
    append(UInt16(hello.name.utf8.count))
    append(hello.name)
    if hello.features & Features.tokens != 0 {
      append(UInt16(hello.token.utf8.count))
      append(hello.token)
    }
    endFrame(start)
  }

  /// Appends the reply to a hello.
  public mutating func appendReply(_ hello: ServerHello, id: UInt32) {
    let start = beginReply(id: id)
    append(hello.version)
    append(UInt16(0))
    append(hello.features)
    append(hello.maxFrameSize)
    append(hello.maxValueSize)
    append(hello.maxKeySize)
    append(hello.maxOpenStores)
    append(hello.maxRequestsInFlight)
    append(hello.maxKeyCount)
    append(UInt16(hello.name.utf8.count))
    append(hello.name)
    endFrame(start)
  }
}
