import Platform

/// Something that a client may not do and asked for.
package struct Refusal: Equatable, Sendable {
  /// Nil for a client of TCP.
  package let peer: Credentials?
  /// The client, as people would name it: `user web (uid 33)`.
  package let client: String
  package let listener: Listener
  /// What it asked for, behind "may not": `write to store sessions`.
  package let action: String
}
