/// A key as a key-value source compares it: by its UTF-8 bytes. Two strings are equal when they look the same (é in one code point or
/// two), two keys are not.
@usableFromInline struct EntryKey: Sendable {
  @usableFromInline let text: String

  @inlinable init(_ text: String) {
    self.text = text
  }
}

extension EntryKey: Hashable {
  @usableFromInline static func == (a: EntryKey, b: EntryKey) -> Bool {
    let (a, b) = (a.text.utf8.span, b.text.utf8.span)
    guard a.count == b.count else { return false }
    for index in a.indices where a[index] != b[index] { return false }
    return true
  }

  @usableFromInline func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension EntryKey: Comparable {
  @usableFromInline static func < (a: EntryKey, b: EntryKey) -> Bool {
    a.text.utf8.lexicographicallyPrecedes(b.text.utf8)
  }
}
