import Wire

/// Requests as bytes. The store is handle 1 unless said otherwise.
enum Request {
  static func make(_ operation: Operation, store: UInt16 = 1, id: UInt32, _ body: [UInt8] = []) -> [UInt8] {
    var buffer = ByteBuffer()
    let start = buffer.beginRequest(operation, store: store, id: id)
    buffer.append(body)
    buffer.endFrame(start)
    return buffer.toArray()
  }

  static func ping(_ id: UInt32) -> [UInt8] { make(.ping, store: 0, id: id) }

  static func get(_ key: String, id: UInt32) -> [UInt8] { make(.get, id: id, Array(key.utf8)) }

  static func put(
    _ key: String, _ value: [UInt8], id: UInt32, store: UInt16 = 1, expiry: UInt64 = 0, ifAbsent: Bool = false,
    ifRevision: UInt64? = nil
  ) -> [UInt8] {
    make(
      .put, store: store, id: id,
      write(key, value, expiry: expiry, ifAbsent: ifAbsent, ifRevision: ifRevision))
  }

  static func putMany(_ entries: [(key: String, value: [UInt8])], id: UInt32, expiry: UInt64 = 0) -> [UInt8] {
    make(.putMany, id: id, bytes(UInt32(entries.count)) + entries.flatMap { write($0.key, $0.value, expiry: expiry) })
  }

  static func putMany(records: [[UInt8]], id: UInt32) -> [UInt8] {
    make(.putMany, id: id, bytes(UInt32(records.count)) + records.flatMap { $0 })
  }

  static func write(
    _ key: String, _ value: [UInt8], expiry: UInt64 = 0, ifAbsent: Bool = false, ifRevision: UInt64? = nil
  ) -> [UInt8] {
    var buffer = ByteBuffer()
    unsafe buffer.appendWrite(
      kind: .single, expiry: expiry, ifAbsent: ifAbsent, ifRevision: ifRevision, key: Array(key.utf8).span.bytes,
      value: value.span.bytes)
    return buffer.toArray()
  }

  static func delete(_ key: String, id: UInt32, ifRevision: UInt64? = nil) -> [UInt8] {
    make(.delete, id: id, ifRevision.map { [4] + bytes($0) + key.utf8 } ?? [0] + key.utf8)
  }

  /// A get-many or delete-many.
  static func keys(_ operation: Operation, _ keys: [String], id: UInt32) -> [UInt8] {
    make(operation, id: id, bytes(UInt32(keys.count)) + keys.flatMap { bytes(UInt16($0.utf8.count)) + $0.utf8 })
  }

  static func page(
    id: UInt32, offset: UInt64 = 0, limit: UInt32, prefix: String = "", after: String? = nil, reverse: Bool = false,
    keysOnly: Bool = false
  ) -> [UInt8] {
    scan(.page, id: id, page: (limit, offset), prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
  }

  static func all(
    id: UInt32, prefix: String = "", after: String? = nil, reverse: Bool = false, keysOnly: Bool = false
  ) -> [UInt8] {
    scan(.all, id: id, page: nil, prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
  }

  private static func scan(
    _ operation: Operation, id: UInt32, page: (limit: UInt32, offset: UInt64)?, prefix: String, after: String?,
    reverse: Bool, keysOnly: Bool
  ) -> [UInt8] {
    var buffer = ByteBuffer()
    let prefix = Array(prefix.utf8)
    if let after {
      unsafe buffer.appendScan(
        page: page, prefix: prefix.span.bytes, after: Array(after.utf8).span.bytes, reverse: reverse,
        keysOnly: keysOnly)
    } else {
      unsafe buffer.appendScan(
        page: page, prefix: prefix.span.bytes, after: nil, reverse: reverse, keysOnly: keysOnly)
    }
    return make(operation, id: id, buffer.toArray())
  }

  static func watch(id: UInt32, from: UInt64 = 0, prefix: String = "", keysOnly: Bool = false) -> [UInt8] {
    var buffer = ByteBuffer()
    unsafe buffer.appendWatch(from: from, prefix: Array(prefix.utf8).span.bytes, keysOnly: keysOnly)
    return make(.watch, id: id, buffer.toArray())
  }

  static func credit(_ amount: UInt32, id: UInt32) -> [UInt8] { make(.credit, store: 0, id: id, bytes(amount)) }

  static func cancel(_ id: UInt32) -> [UInt8] { make(.cancel, store: 0, id: id) }

  static func create(_ name: String, engine: String = "memory", id: UInt32) -> [UInt8] {
    make(.storeCreate, store: 0, id: id, [UInt8(name.utf8.count)] + name.utf8 + engine.utf8)
  }

  static func drop(_ name: String, id: UInt32) -> [UInt8] { make(.storeDrop, store: 0, id: id, Array(name.utf8)) }

  static func open(_ name: String, id: UInt32) -> [UInt8] { make(.storeOpen, store: 0, id: id, Array(name.utf8)) }

  static func bytes<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
    (0..<T.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> (8 * T($0))) }
  }
}
