/// What a cache keeps for a key: the value or list, or nil if there is none.
///
/// A cache keeps it without the type of the value. So the code that finds it is compiled once, for all types of values,
/// and only the last step of a hit is specialized.
@usableFromInline package final class CachedValue<T: Sendable>: Sendable {
  @usableFromInline package let value: StoredValue<T>?

  package init(_ value: StoredValue<T>?) {
    self.value = value
  }

  /// Returns the content of a cache that has no other contents.
  @inlinable package static func of(_ content: CachedContent) -> CachedValue {
    unsafe unsafeDowncast(content, to: CachedValue.self)
  }
}

/// A `CachedValue` of any type.
@usableFromInline package typealias CachedContent = any AnyObject & Sendable
