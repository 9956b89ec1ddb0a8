/// The reason why a certificate, a key or another part of a TLS configuration can't be used.
package struct TLSError: Error, Equatable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}
