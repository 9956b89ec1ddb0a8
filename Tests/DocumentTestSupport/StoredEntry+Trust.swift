import Documents

extension StoredEntry {
  /// Calls `body` with an entry that is trusted if its value is an I-JSON object, as a store would have it.
  package static func withTrust<Result>(
    key: String, _ value: [UInt8], revision: UInt64, handle: UInt32 = 0, documentCount: Int = 1,
    _ body: (StoredEntry) throws -> Result
  ) rethrows -> Result {
    var checker = IJSON()
    var budget = WorkBudget()
    let isTrusted = checker.isObject(value.span, &budget)
    let key = Array(key.utf8)
    return unsafe try key.withUnsafeBytes { key in
      unsafe try value.withUnsafeBytes { value in
        unsafe try body(
          StoredEntry(
            key: key, value: value, revision: revision, handle: handle, documentCount: documentCount,
            isTrusted: isTrusted))
      }
    }
  }
}
