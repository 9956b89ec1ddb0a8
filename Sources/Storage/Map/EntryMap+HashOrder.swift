/// Reading a map in the order of its hashes, a little at a time. What is there from the first call to the last is found,
/// however the map changes meanwhile, and nothing has to be kept between two calls.
extension EntryMap {
  /// A number of the map's hash function. Positions in the order of its hashes mean nothing to a map with another one.
  package var hashTag: UInt32 { hashIndex.tag }

  /// Calls `body` with entries whose hashes come next, expired ones among them. It returns what an entry counts as.
  /// - Parameters:
  ///   - start: Where the last call ended; 0 at the beginning.
  ///   - count: What entries count as together when it stops. There may be some more.
  /// - Returns: Where the next call begins, at most 2^32 − 1; nil at the end.
  /// - Throws: `commitPending`.
  package func scanHashes(
    from start: UInt64, count: Int, _ body: (EntryView) -> Int
  ) throws(StorageError) -> UInt64? {
    if isDiverted { throw .commitPending }
    guard var position = UInt32(exactly: start) else { return nil }
    var left = count
    while true {
      let next = hashIndex.visitChunk(from: position, in: arena) { handle in
        left -= body(record(handle).view)
      }
      guard let next else { return nil }
      position = next
      if left <= 0 { return UInt64(position) }
    }
  }
}
