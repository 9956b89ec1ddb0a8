import Documents
import Storage
import Wire

/// What requests ask of entries and documents, as the requests of Larder's own protocol say it.
extension HTTPRequest {
  // MARK: Entries

  /// Returns the command on entries, and the bytes that it refers to.
  func command(_ bytes: RawSpan) throws(CommandFailure) -> (Command, [UInt8]) {
    var buffer = ByteBuffer()
    switch (route.resource, method) {
    case (.entry, .get), (.entry, .head):
      let key = try key(bytes)
      return (.get(key: 0..<key.count), key)
    case (.entry, .put):
      let key = try key(bytes)
      unsafe buffer.appendWrite(
        kind: .single, expiry: try expiry(bytes), key: key.span.bytes, value: bytes.extracting(body))
      let body = buffer.toArray()
      guard let write = unsafe WriteRecord(body.span.bytes, at: 0) else { preconditionFailure("the body is valid") }
      return (.put(write), body)
    case (.entry, .delete):
      let key = try key(bytes)
      return (.delete(key: 0..<key.count, EntryCondition()), key)
    case (.apply, _): return try applyCommand(bytes)
    case (.deletion, _): return try deletionCommand(bytes)
    case (.count, _):
      let parameters = try HTTPParameters(route.query, of: bytes, names: ["prefix"])
      let prefix = parameters.bytes("prefix")
      return (.count(prefix: 0..<prefix.count), prefix)
    case (.changes, _):
      let parameters = try HTTPParameters(
        route.query, of: bytes, names: ["prefix", "from", "incarnation", "values"])
      let prefix = parameters.bytes("prefix")
      try Self.checkSizes(prefix)
      // The incarnation is always of interest, so that a client can go on later.
      unsafe buffer.appendWatch(
        from: try parameters.revision("from") ?? 0, incarnation: try parameters.revision("incarnation") ?? 0,
        prefix: prefix.span.bytes, keysOnly: !(try parameters.flag("values")))
      let body = buffer.toArray()
      guard let watch = unsafe WatchRequest(body.span.bytes) else { preconditionFailure("the body is valid") }
      return (.watch(watch), body)
    default:
      let parameters = try HTTPParameters(
        route.query, of: bytes, names: ["prefix", "after", "limit", "offset", "reverse", "values"])
      let limit = try parameters.number("limit", in: 1...HTTPParameters.maxLimit) ?? HTTPParameters.defaultLimit
      let prefix = parameters.bytes("prefix")
      let after = parameters.has("after") ? parameters.bytes("after") : nil
      try Self.checkSizes(prefix, after)
      let (reverse, values) = (try parameters.flag("reverse"), try parameters.flag("values"))
      let page = (limit: UInt32(limit), offset: UInt64(try parameters.number("offset", in: 0...Int.max) ?? 0))
      if let after {
        unsafe buffer.appendScan(
          page: page, prefix: prefix.span.bytes, after: after.span.bytes, reverse: reverse, keysOnly: !values)
      } else {
        unsafe buffer.appendScan(page: page, prefix: prefix.span.bytes, after: nil, reverse: reverse, keysOnly: !values)
      }
      let body = buffer.toArray()
      guard let scan = unsafe ScanRequest(body.span.bytes, of: .page) else { preconditionFailure("the body is valid") }
      return (.scan(scan, isPage: true), body)
    }
  }

  static func checkSizes(_ keys: [UInt8]?...) throws(CommandFailure) {
    for case let key? in keys where key.count > Key.maxSize {
      throw CommandFailure(.keyInvalid, "a key has at most \(Key.maxSize) bytes, not \(key.count)")
    }
  }

  /// The key of an entry.
  func key(_ bytes: RawSpan) throws(CommandFailure) -> [UInt8] {
    guard !route.rest.isEmpty else {
      let key = try HTTPParameters(route.query, of: bytes, names: ["key"]).bytes("key")
      try Self.checkSizes(key)
      return key
    }
    let key = try nameInPath(bytes, parameter: "/entry?key=")
    try Self.checkSizes(key)
    return key
  }

  /// The name of an index.
  func indexName(_ bytes: RawSpan) throws(CommandFailure) -> String {
    let name =
      route.resource == .index
      ? try nameInPath(bytes, parameter: "/indexes?name=")
      : try HTTPParameters(route.query, of: bytes, names: ["name"]).bytes("name")
    return String(decoding: name, as: UTF8.self)
  }

  /// Returns the end of the path, decoded. Clients and proxies decode paths, shorten them and make them anew, which makes
  /// other names of some: nobody should rely on these in paths.
  /// - Parameter parameter: Where such a name can be.
  private func nameInPath(_ bytes: RawSpan, parameter: String) throws(CommandFailure) -> [UInt8] {
    let name = try HTTPParameters.decode(route.rest, of: bytes)
    let parts = name.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    let isStable = parts.enumerated().allSatisfy { index, part in
      !part.elementsEqual(".".utf8) && !part.elementsEqual("..".utf8) && (!part.isEmpty || index == parts.count - 1)
    }
    guard isStable, !name.contains(0) else {
      throw CommandFailure(
        .illegalArgument,
        "clients and proxies change paths with '//', '/./', '/../' or %00, encoded or not: use \(parameter)")
    }
    return name
  }

  /// The milliseconds until an entry that is written expires; 0 for never.
  private func expiry(_ bytes: RawSpan) throws(CommandFailure) -> UInt64 {
    guard let field = self[.expiresIn] else { return 0 }
    guard let number = bytes.extracting(field).decimalNumber, number > 0 else {
      throw CommandFailure(.illegalArgument, "Larder-Expires-In is a number of milliseconds, at least 1")
    }
    return UInt64(number)
  }
}

/// The parameters of a query.
struct HTTPParameters {
  static let maxLimit = 1_000
  static let defaultLimit = 100

  private var values: [(name: String, value: [UInt8])] = []

  /// - Parameter names: The parameters that there may be.
  init(_ query: Range<Int>, of bytes: RawSpan, names: [String]) throws(CommandFailure) {
    var position = query.lowerBound
    while position < query.upperBound {
      let end = (position..<query.upperBound).first { bytes.byte($0) == UInt8(ascii: "&") } ?? query.upperBound
      let equals = (position..<end).first { bytes.byte($0) == UInt8(ascii: "=") } ?? end
      let name = String(decoding: try Self.decode(position..<equals, of: bytes, plusIsSpace: true), as: UTF8.self)
      guard names.contains(name) else {
        throw CommandFailure(
          .illegalArgument, "there is no parameter '\(name)': there are \(names.joined(separator: ", "))")
      }
      guard !has(name) else { throw CommandFailure(.illegalArgument, "the parameter '\(name)' must not be repeated") }
      values.append((name, try Self.decode(min(equals + 1, end)..<end, of: bytes, plusIsSpace: true)))
      position = end + 1
    }
  }

  func has(_ name: String) -> Bool { values.contains { $0.name == name } }

  /// The value of a parameter; empty if it isn't there.
  func bytes(_ name: String) -> [UInt8] { values.first { $0.name == name }?.value ?? [] }

  func number(_ name: String, in range: ClosedRange<Int>) throws(CommandFailure) -> Int? {
    guard has(name) else { return nil }
    let text = String(decoding: bytes(name), as: UTF8.self)
    guard let number = Int(digits: text[...]), range.contains(number) else {
      let bounds =
        range.upperBound == .max ? "from \(range.lowerBound) on" : "from \(range.lowerBound) to \(range.upperBound)"
      throw CommandFailure(.illegalArgument, "'\(name)' is a number \(bounds)")
    }
    return number
  }

  func revision(_ name: String) throws(CommandFailure) -> UInt64? {
    guard has(name) else { return nil }
    guard let number = UInt64(digits: String(decoding: bytes(name), as: UTF8.self)[...]) else {
      throw CommandFailure(.illegalArgument, "'\(name)' is a number, as in an earlier reply")
    }
    return number
  }

  /// Whether a parameter is 1; false if it isn't there.
  func flag(_ name: String) throws(CommandFailure) -> Bool {
    guard has(name) else { return false }
    switch String(decoding: bytes(name), as: UTF8.self) {
    case "1": return true
    case "0": return false
    default: throw CommandFailure(.illegalArgument, "'\(name)' is 1 or 0")
    }
  }

  /// Decodes percent encoding.
  /// - Parameter plusIsSpace: Whether a plus stands for a space, as in the queries of forms.
  static func decode(_ range: Range<Int>, of bytes: RawSpan, plusIsSpace: Bool = false) throws(CommandFailure)
    -> [UInt8]
  {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(range.count)
    var position = range.lowerBound
    while position < range.upperBound {
      let byte = bytes.byte(position)
      position += 1
      switch byte {
      case UInt8(ascii: "%"):
        guard position + 1 < range.upperBound, let high = digit(bytes.byte(position)),
          let low = digit(bytes.byte(position + 1))
        else { throw CommandFailure(.illegalArgument, "a '%' must be followed by two hexadecimal digits") }
        decoded.append(high << 4 | low)
        position += 2
      case UInt8(ascii: "+") where plusIsSpace: decoded.append(0x20)
      default: decoded.append(byte)
      }
    }
    return decoded
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
