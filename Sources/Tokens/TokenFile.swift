/// A token as a server knows it.
package struct TokenRecord: Equatable, Sendable {
  /// The principal that has the token, as access rules call it.
  package let name: String
  package let digest: TokenDigest
  /// When it was created, in seconds since 1970.
  package let created: Int64
  /// When it expires, in seconds since 1970; nil for never.
  package let expiry: Int64?

  package init(name: String, digest: TokenDigest, created: Int64, expiry: Int64?) {
    (self.name, self.digest, self.created, self.expiry) = (name, digest, created, expiry)
  }

  /// Returns whether a text can be a principal's name: 1 to 128 letters, digits and `. _ - : / @` of ASCII.
  package static func isName(_ text: some StringProtocol) -> Bool {
    (1...128).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
          || "._-:/@".utf8.contains(byte)
      }
  }

  package func isExpired(at now: Int64) -> Bool { expiry.map { $0 <= now } ?? false }
}

/// The file in which a server's tokens are: a line for each, with its name, its digest, when it was created and when it
/// expires, in seconds since 1970 or `-`. Lines that begin with `#` are comments.
package struct TokenFile: Equatable, Sendable {
  package private(set) var records: [TokenRecord]

  private static let header = """
    # Access tokens of larderd: NAME SHA-256 CREATED EXPIRES. Change them with "larder token", then reload larderd.

    """

  /// The reason why a file can't be used.
  package struct Flaw: Error, Equatable, Sendable, CustomStringConvertible {
    package let description: String
  }

  package init() { records = [] }

  /// - Parameter source: The path of the file, for errors.
  package init(_ bytes: [UInt8], from source: String) throws(Flaw) {
    records = []
    let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() where !line.isEmpty && line.first != 0x23 {
      guard let record = Self.record(String(decoding: line, as: UTF8.self)) else {
        throw Flaw(description: "\(source), line \(index + 1): this is not NAME SHA-256 CREATED EXPIRES")
      }
      guard !records.contains(where: { $0.name == record.name }) else {
        throw Flaw(description: "\(source), line \(index + 1): '\(record.name)' has a token already")
      }
      records.append(record)
    }
  }

  private static func record(_ line: String) -> TokenRecord? {
    let fields = line.split(separator: " ", omittingEmptySubsequences: false)
    guard fields.count == 4, TokenRecord.isName(fields[0]), let digest = TokenDigest(fields[1]),
      let created = Int64(fields[2]), fields[3] == "-" || Int64(fields[3]) != nil
    else { return nil }
    return TokenRecord(name: String(fields[0]), digest: digest, created: created, expiry: Int64(fields[3]))
  }

  /// The contents of the file.
  package var bytes: [UInt8] {
    let lines = records.map { record in
      "\(record.name) \(record.digest.text) \(record.created) \(record.expiry.map { "\($0)" } ?? "-")\n"
    }
    return Array((Self.header + lines.joined()).utf8)
  }

  /// Adds a token.
  /// - Returns: False if its name has a token already.
  package mutating func add(_ record: TokenRecord) -> Bool {
    guard !records.contains(where: { $0.name == record.name }) else { return false }
    records.append(record)
    return true
  }

  /// Removes the token with a name.
  /// - Returns: Whether there was one.
  package mutating func remove(_ name: String) -> Bool {
    let count = records.count
    records.removeAll { $0.name == name }
    return records.count < count
  }
}
