extension EntryMap {
  /// Has the entry of that key know its value by where it lies, and lets go of the bytes, or of where the value lay before. Does nothing
  /// when the entry is another one by now.
  ///
  /// It is no change of the entry, so whoever sees it in a snapshot sees what it saw. Of two values with one key and revision the later
  /// one counts: it comes first here, and the other finds the entry to be in the same file already.
  mutating func place(_ placed: PlacedValue) {
    unsafe placed.key.withUnsafeBytes { bytes in
      let key = unsafe Key(start: bytes.baseAddress!, count: bytes.count)
      let handle = find(key, hash: hashIndex.hash(key))
      guard handle != 0 else { return }
      let record = record(handle)
      guard record.revision == placed.revision, record.isExternal else { return }
      let old = unsafe record.external
      guard unsafe ExternalValues.stored(old)?.file !== placed.value.file else { return }
      // Without memory for it, things stay as they are.
      guard let new = unsafe try? externals.make(placed.value) else { return }
      unsafe record.setExternal(new)
      unsafe externals.free(old)
    }
  }
}
