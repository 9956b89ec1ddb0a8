/// The reply to a store-open request: `Protocol/wire.md` §6.2.
public struct OpenedStore: Equatable, Sendable {
  public let handle: UInt16
  public let engine: String

  public init(handle: UInt16, engine: String) {
    self.handle = handle
    self.engine = engine
  }

  /// Decodes the reply, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard let handle = body.integer(at: 0, as: UInt16.self), handle != 0 else { return nil }
    self.handle = handle
    engine = body.extracting(2..<body.byteCount).toString()
  }
}

/// The body of a store-create or store-move request: `Protocol/wire.md` §6.2 and §6.15.
public struct NamedStoreRequest: Equatable, Sendable {
  public let name: String
  /// For store-create, the engine and its options, as in `log?durability=none`; for store-move, the name of the server
  /// that is to serve the store.
  public let argument: String

  public init(name: String, argument: String) {
    self.name = name
    self.argument = argument
  }

  /// Decodes the body, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard let name = body.shortText(at: 0) else { return nil }
    self.name = name.text
    argument = body.extracting(name.end..<body.byteCount).toString()
  }
}

/// The body of a store-open-stale request: `Protocol/wire.md` §6.15.
public struct StaleOpenRequest: Equatable, Sendable {
  /// How old what is read may be, in milliseconds.
  public let maxStaleness: UInt32
  public let name: String

  public init(name: String, maxStaleness: UInt32) {
    self.name = name
    self.maxStaleness = maxStaleness
  }

  /// Decodes the body, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard let maxStaleness = body.integer(at: 0, as: UInt32.self) else { return nil }
    self.maxStaleness = maxStaleness
    name = body.extracting(4..<body.byteCount).toString()
  }
}

/// A store of a store-list reply: `Protocol/wire.md` §6.2.
public struct ListedStore: Equatable, Sendable {
  public let name: String
  /// The specification of a store that is damaged and not served.
  public static let damagedSpecification = "damaged"

  /// The engine and its options, as in `log?durability=none`; `damagedSpecification` for a damaged store.
  public let specification: String
  /// The number of entries.
  public let entries: UInt64

  public init(name: String, specification: String, entries: UInt64) {
    self.name = name
    self.specification = specification
    self.entries = entries
  }

  /// Decodes the stores of a store-list reply, or returns nil if it is malformed.
  public static func decode(_ body: RawSpan) -> [ListedStore]? {
    var stores: [ListedStore] = []
    var offset = 0
    while offset < body.byteCount {
      guard let name = body.shortText(at: offset), let specification = body.shortText(at: name.end),
        let entries = body.integer(at: specification.end, as: UInt64.self)
      else { return nil }
      stores.append(ListedStore(name: name.text, specification: specification.text, entries: entries))
      offset = specification.end + 8
    }
    return stores
  }
}

extension ByteBuffer {
  public mutating func append(_ opened: OpenedStore) {
    append(opened.handle)
    append(opened.engine)
  }

  public mutating func append(_ request: NamedStoreRequest) {
    appendShort(request.name)
    append(request.argument)
  }

  public mutating func append(_ request: StaleOpenRequest) {
    append(request.maxStaleness)
    append(request.name)
  }

  public mutating func append(_ store: ListedStore) {
    appendShort(store.name)
    appendShort(store.specification)
    append(store.entries)
  }
}
