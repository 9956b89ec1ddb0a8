import Documents
import FoundationEssentials

/// Decodes types from probe values: every key is there, arrays have elements, and scalars are candidates.
///
/// Where a type refuses its values, others are tried, and other numbers of elements. An optional value of a type that
/// refuses all of them is nil, and so is one of a type that contains itself.
struct ProbeDecoder: Decoder {
  /// What the decoders of one value share.
  final class Session {
    var values: ProbeValues
    /// The types that are being decoded, outermost first.
    var types: [ObjectIdentifier] = []
    /// The number of elements of every array.
    var elementCount = ProbeDecoder.elementCount
    let userInfo: [CodingUserInfoKey: Any]

    init(_ values: ProbeValues, _ userInfo: [CodingUserInfoKey: Any]) {
      self.values = values
      self.userInfo = userInfo
    }
  }

  struct Refused: Error, CustomStringConvertible {
    let description: String
  }

  let session: Session
  let path: String
  /// The number of containers that the value is in.
  private let depth: Int
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { session.userInfo }

  private static let elementCount = 3
  /// The numbers that are tried for types that refuse arrays of `elementCount` elements.
  private static let otherElementCounts = [2, 4, 0]
  /// The maximum number of types that are decoded in each other.
  private static let maxTypeCount = 16
  private static let maxDepth = 100

  static func decode<Value: Decodable>(
    _ type: Value.Type, _ values: inout ProbeValues, userInfo: [CodingUserInfoKey: Any]
  ) throws -> Value {
    let session = Session(values, userInfo)
    defer { values = session.values }
    return try ProbeDecoder(session: session, path: "", depth: 0).decode(type)
  }

  func child(_ name: String) -> ProbeDecoder {
    ProbeDecoder(session: session, path: "\(path)/\(name)", depth: depth + 1)
  }

  /// Returns the decoder of a container.
  func container(_ name: String) throws -> ProbeDecoder {
    guard depth < Self.maxDepth else { throw Refused(description: "its values are nested too deeply") }
    try session.values.spend()
    return child(name)
  }

  func choose<Value>(_ candidates: [Value]) throws -> Value { try session.values.choose(candidates, at: path) }

  /// Returns whether the value is nil, as any optional value is once.
  func isNil() throws -> Bool { try session.values.isNil(path) }

  // MARK: Types

  /// Decodes a value that is no scalar of JSON.
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    if let value = try foundationValue(type) { return value }
    let id = ObjectIdentifier(type)
    // A collection is empty where its elements are refused.
    guard session.types.count < Self.maxTypeCount,
      type is any Collection.Type || session.types.count(where: { $0 == id }) < 2
    else { throw Refused(description: "\(type) contains itself") }
    if let cases = Self.cases(of: type) { return try choose(cases) }
    session.types.append(id)
    defer { session.types.removeLast() }
    let start = session.values.paths.count
    do { return try Value(from: self) } catch let error {
      if let value = decodeOtherElementCounts(type) ?? decodeOtherCandidates(type, from: start) { return value }
      throw error
    }
  }

  /// Tries each of the other candidates for all values that the type has decoded.
  private func decodeOtherCandidates<Value: Decodable>(_ type: Value.Type, from start: Int) -> Value? {
    let values = session.values
    var index = 1
    while session.values.choose(index, from: start), session.values.remainingCount > 0 {
      if let value = try? Value(from: self) { return value }
      index += 1
    }
    session.values.restoreChoices(of: values)
    return nil
  }

  /// Tries other numbers of elements for all arrays in the type.
  private func decodeOtherElementCounts<Value: Decodable>(_ type: Value.Type) -> Value? {
    guard session.elementCount == Self.elementCount else { return nil }
    defer { session.elementCount = Self.elementCount }
    for count in Self.otherElementCounts {
      session.elementCount = count
      if let value = try? Value(from: self) { return value }
    }
    return nil
  }

  /// Returns a value of a type that encoders write in a way of their own, or that can't decode itself from candidates.
  private func foundationValue<Value: Decodable>(_ type: Value.Type) throws -> Value? {
    switch type {
    case is Date.Type: try choose(ProbeCandidates.dates) as? Value
    case is Data.Type: try choose(ProbeCandidates.data) as? Value
    case is URL.Type: try choose(ProbeCandidates.urls) as? Value
    case is UUID.Type: try choose(ProbeCandidates.uuids) as? Value
    case is Decimal.Type: try choose(ProbeCandidates.decimals) as? Value
    case is JSONValue.Type: try choose(ProbeCandidates.json) as? Value
    case is Calendar.Type: try choose(ProbeCandidates.calendars) as? Value
    case is TimeZone.Type: try choose(ProbeCandidates.timeZones) as? Value
    // A type of Foundation beyond its essentials, to which alone this module links.
    case _ where String(reflecting: type) == "Foundation.IndexSet":
      try JSONDecoder().decode(type, from: Data(choose(ProbeCandidates.indexSets).utf8))
    case is URLComponents.Type: try choose(ProbeCandidates.urlComponents) as? Value
    default: nil
    }
  }

  /// Returns cases of an enum with raw values; nil for other types.
  private static func cases<Value>(of type: Value.Type) -> [Value]? {
    func all<Cases: CaseIterable>(_ type: Cases.Type) -> [Value]? { Array(Cases.allCases.prefix(4)) as? [Value] }
    let cases = (type as? any (CaseIterable & RawRepresentable).Type).flatMap { all($0) } ?? EnumCases.first(of: type)
    return cases.isEmpty ? nil : cases
  }

  // MARK: Containers

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(ProbeMembers(decoder: self))
  }

  func unkeyedContainer() -> any UnkeyedDecodingContainer { ProbeElements(decoder: self) }
  func singleValueContainer() -> any SingleValueDecodingContainer { ProbeScalar(decoder: self) }
}

/// The members of an object: every key that is asked for.
private struct ProbeMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let decoder: ProbeDecoder
  var codingPath: [any CodingKey] { [] }

  /// A key for types that decode all members, such as dictionaries, and one of the keys of an enum with payloads. A
  /// number is a key of most dictionaries.
  var allKeys: [Key] {
    if let key = Key(stringValue: "7") { return decoder.session.elementCount > 0 ? [key] : [] }
    let keys = EnumCases.firstKeys(of: Key.self)
    return (try? decoder.child("case").choose(keys)).map { [$0] } ?? []
  }

  /// Every key is there, but not forever: a type may ask for one after the other.
  func contains(_ key: Key) -> Bool { (try? decoder.session.values.spend()) != nil }

  func decodeNil(forKey key: Key) throws -> Bool { try decoder.child(key.stringValue).isNil() }
  private func scalar(_ key: Key) -> ProbeScalar { ProbeScalar(decoder: decoder.child(key.stringValue)) }
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try scalar(key).decode(type) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String { try scalar(key).decode(type) }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try scalar(key).decode(type) }
  func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try scalar(key).decode(type) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try scalar(key).decode(type) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try scalar(key).decode(type) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try scalar(key).decode(type) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try scalar(key).decode(type) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try scalar(key).decode(type) }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try scalar(key).decode(type) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try scalar(key).decode(type) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try scalar(key).decode(type) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try scalar(key).decode(type) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try scalar(key).decode(type) }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try scalar(key).decode(type) }

  func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
    try decodeNil(forKey: key) ? nil : try? scalar(key).decode(type)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try decoder.container(key.stringValue).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try decoder.container(key.stringValue).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder { try decoder.container("super") }
  func superDecoder(forKey key: Key) throws -> any Decoder { try decoder.container(key.stringValue) }
}

/// The elements of an array.
private struct ProbeElements: UnkeyedDecodingContainer {
  let decoder: ProbeDecoder
  var currentIndex = 0
  var codingPath: [any CodingKey] { [] }
  var count: Int? { decoder.session.elementCount }
  var isAtEnd: Bool { currentIndex >= decoder.session.elementCount }

  init(decoder: ProbeDecoder) { self.decoder = decoder }

  private mutating func next() -> ProbeDecoder {
    defer { currentIndex += 1 }
    return decoder.child(String(currentIndex))
  }

  private mutating func nextContainer() throws -> ProbeDecoder {
    defer { currentIndex += 1 }
    return try decoder.container(String(currentIndex))
  }

  func decodeNil() throws -> Bool {
    try decoder.session.values.spend()
    return false
  }
  mutating func decode(_ type: Bool.Type) throws -> Bool { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: String.Type) throws -> String { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: Double.Type) throws -> Double { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: Float.Type) throws -> Float { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: Int.Type) throws -> Int { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: Int8.Type) throws -> Int8 { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: Int16.Type) throws -> Int16 { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: Int32.Type) throws -> Int32 { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: Int64.Type) throws -> Int64 { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: UInt.Type) throws -> UInt { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try ProbeScalar(decoder: next()).decode(type) }
  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try ProbeScalar(decoder: next()).decode(type)
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> {
    try nextContainer().container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try nextContainer().unkeyedContainer()
  }

  mutating func superDecoder() throws -> any Decoder { try nextContainer() }
}

/// A value that is a candidate, or of a type that decodes itself.
private struct ProbeScalar: SingleValueDecodingContainer {
  let decoder: ProbeDecoder
  var codingPath: [any CodingKey] { [] }

  private func integer<Value: FixedWidthInteger>(_ type: Value.Type) throws -> Value {
    try decoder.choose(ProbeCandidates.integers(type))
  }

  func decodeNil() -> Bool { (try? decoder.isNil()) ?? false }
  func decode(_ type: Bool.Type) throws -> Bool { try decoder.choose(ProbeCandidates.booleans) }
  func decode(_ type: String.Type) throws -> String { try decoder.choose(ProbeCandidates.strings) }
  func decode(_ type: Double.Type) throws -> Double { try decoder.choose(ProbeCandidates.doubles) }
  func decode(_ type: Float.Type) throws -> Float { try decoder.choose(ProbeCandidates.floats(type)) }
  func decode(_ type: Int.Type) throws -> Int { try integer(type) }
  func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
  func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
  func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
  func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
  func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try decoder.decode(type) }
}
