@testable import Storage

/// An arena of records, for tests of the indexes that refer to them.
struct RecordSpace: ~Copyable {
  var arena = Arena()

  /// Adds a record with this key and an empty value.
  mutating func add(_ key: [UInt8]) throws -> UInt32 {
    let handle = try arena.allocate(units: Record.units(keyLength: key.count, valueLength: 0, hasExpiry: false))
    unsafe key.withUnsafeBytes { bytes in
      let (key, empty) = unsafe (
        Key(start: bytes.baseAddress!, count: bytes.count), UnsafeRawBufferPointer(start: nil, count: 0)
      )
      unsafe Record(at: arena.address(handle)).initialize(
        key: key, value: empty, external: nil, kind: .single, revision: 1, expiry: 0)
    }
    return handle
  }

  func key(_ handle: UInt32) -> Key { unsafe Record(at: arena.address(handle)).key }
}
