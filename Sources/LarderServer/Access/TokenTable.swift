import Tokens

/// The tokens that a server accepts.
package struct TokenTable: Sendable {
  private let records: [TokenDigest: TokenRecord]
  /// When the tokens expire, in seconds since 1970, in ascending order.
  private let expiries: [Int64]

  package init(_ records: [TokenRecord] = []) {
    self.records = Dictionary(records.map { ($0.digest, $0) }) { first, _ in first }
    expiries = records.compactMap(\.expiry).sorted()
  }

  package var isEmpty: Bool { records.isEmpty }

  /// All tokens, by name.
  var sorted: [TokenRecord] { records.values.sorted { $0.name < $1.name } }

  /// The token with a digest, whether it has expired or not; nil if there is none.
  func record(_ digest: TokenDigest) -> TokenRecord? { records[digest] }

  /// The name of the principal that has a token; nil if it isn't accepted.
  /// - Parameter now: In seconds since 1970.
  func principal(_ digest: TokenDigest, now: Int64) -> String? {
    guard let record = records[digest], !record.isExpired(at: now) else { return nil }
    return record.name
  }

  /// The tokens that were added and removed, as events for the audit.
  func changes(since former: TokenTable) -> [AuditEvent] {
    func names(_ table: TokenTable, without other: TokenTable) -> [String] {
      table.records.values.filter { other.record($0.digest) == nil }.map(\.name).sorted()
    }
    return names(former, without: self).map { AuditEvent(.tokenRemoved, object: $0) }
      + names(self, without: former).map { AuditEvent(.tokenAdded, object: $0) }
  }

  /// Whether a token has expired in a period of time.
  func hasExpiry(after start: Int64, upTo end: Int64) -> Bool { expiries.contains { start < $0 && $0 <= end } }
}
