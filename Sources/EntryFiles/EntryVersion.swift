import CLinux

/// The part of a file's name that describes the entry apart from its key (Protocol/directory-format.md, §3), as in
/// `NAME@17-x1800000000000-list-0c23a9f1`.
package struct EntryVersion: Equatable, Sendable {
  /// The valid revisions.
  package static let revisions = 1...UInt64(Int64.max) - 1

  package let isList: Bool
  package let revision: UInt64
  /// The time when the entry expires, in milliseconds since 1970; 0 for never.
  package let expiry: UInt64
  /// The CRC32C of the name's preceding part and of the value.
  package let checksum: UInt32

  package init(of name: EntryName, isList: Bool, revision: UInt64, expiry: UInt64, value: UnsafeRawBufferPointer) {
    self.isList = isList
    self.revision = revision
    self.expiry = expiry
    let stem = Self.stem(name, isList: isList, revision: revision, expiry: expiry)
    checksum = unsafe Self.checksum(stem: stem, value: value)
  }

  private init(isList: Bool, revision: UInt64, expiry: UInt64, checksum: UInt32) {
    self.isList = isList
    self.revision = revision
    self.expiry = expiry
    self.checksum = checksum
  }

  /// Returns whether the checksum matches the file's name and value.
  package func matches(_ value: UnsafeRawBufferPointer, of name: EntryName) -> Bool {
    unsafe EntryVersion(of: name, isList: isList, revision: revision, expiry: expiry, value: value) == self
  }

  /// Returns the checksum of an empty file with this name and version.
  package func checksum(ofNameOnly name: EntryName) -> UInt32 {
    unsafe Self.checksum(
      stem: Self.stem(name, isList: isList, revision: revision, expiry: expiry),
      value: UnsafeRawBufferPointer(start: nil, count: 0))
  }

  package func hasExpired(at wall: UInt64) -> Bool { expiry != 0 && expiry <= wall }

  /// Returns the name of the file.
  package func fileName(_ name: EntryName) -> String {
    Self.stem(name, isList: isList, revision: revision, expiry: expiry) + "-"
      + hexadecimalText(UInt64(checksum), digits: 8)
  }

  private static func stem(_ name: EntryName, isList: Bool, revision: UInt64, expiry: UInt64) -> String {
    "\(name.text)@\(revision)" + (expiry == 0 ? "" : "-x\(expiry)") + (isList ? "-list" : "")
  }

  private static func checksum(stem: String, value: UnsafeRawBufferPointer) -> UInt32 {
    var stem = stem
    let crc = stem.withUTF8 { unsafe crc32c(0, $0.baseAddress, $0.count) }
    return unsafe crc32c(crc, value.baseAddress, value.count)
  }

  /// Parses a file's name. Returns nil if it isn't the name of an entry's file.
  package static func read(_ fileName: String) -> (name: EntryName, version: EntryVersion)? {
    guard let (stem, rest) = split(fileName), let name = EntryName(reading: stem) else { return nil }
    var fields = rest.split(separator: "-", omittingEmptySubsequences: false)[...]
    guard let revision = fields.popFirst().flatMap({ UInt64($0) }), revisions.contains(revision),
      let checksum = fields.popLast().flatMap({ UInt32($0, radix: 16) })
    else { return nil }
    var (expiry, isList): (UInt64, Bool) = (0, false)
    if let field = fields.first, field.utf8.first == UInt8(ascii: "x") {
      guard let time = UInt64(field.dropFirst()), time > 0 else { return nil }
      expiry = time
      fields.removeFirst()
    }
    if fields.first == "list" {
      isList = true
      fields.removeFirst()
    }
    let version = EntryVersion(isList: isList, revision: revision, expiry: expiry, checksum: checksum)
    // A number has one spelling. A file whose name has leading zeroes or a plus isn't ours.
    guard fields.isEmpty, version.fileName(name).utf8.elementsEqual(fileName.utf8) else { return nil }
    return (name, version)
  }

  /// Splits a file's name at the last `@`.
  static func split(_ fileName: String) -> (String, Substring)? {
    guard let mark = fileName.utf8.lastIndex(of: UInt8(ascii: "@")) else { return nil }
    return (String(fileName[..<mark]), fileName[fileName.utf8.index(after: mark)...])
  }
}
