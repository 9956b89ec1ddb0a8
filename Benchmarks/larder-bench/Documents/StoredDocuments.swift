import Documents

/// Documents in memory, as a store has them that knows that they are valid.
@safe
final class StoredDocuments {
  private let memory: UnsafeMutableRawBufferPointer
  private let entries: [StoredEntry]

  init(_ texts: [[UInt8]]) {
    unsafe memory = .allocate(byteCount: texts.reduce(0) { $0 + $1.count }, alignment: 8)
    var (entries, offset) = ([StoredEntry](), 0)
    var checker = IJSON()
    var budget = WorkBudget()
    for text in texts {
      unsafe UnsafeMutableRawBufferPointer(rebasing: memory[offset...]).copyBytes(from: text)
      let value = unsafe UnsafeRawBufferPointer(rebasing: memory[offset..<offset + text.count])
      offset += text.count
      let isTrusted = checker.isObject(text.span, &budget)
      unsafe entries.append(StoredEntry(key: value, value: value, revision: 1, isTrusted: isTrusted))
    }
    self.entries = entries
  }

  func withEntries(_ body: (Span<StoredEntry>) throws -> Void) rethrows {
    let entries = entries
    try body(entries.span)
  }

  deinit { unsafe memory.deallocate() }
}
