import Wire

extension Command {
  /// Whether rights permit what the command asks of entries. What it asks after a malformed record doesn't matter, because
  /// then it isn't executed. O(n) for n keys.
  func isPermitted(in bytes: RawSpan, by rights: StoreRights) -> Bool {
    switch self {
    case .get(let key): return rights.right(to: bytes.extracting(key)) >= .read
    case .getRange(let request): return rights.right(to: bytes.extracting(request.key)) >= .read
    case .getMany(let keys): return keys.allSatisfy(in: bytes) { rights.right(to: $0) >= .read }
    case .put(let write): return rights.right(to: bytes.extracting(write.key)) >= .write
    case .putMany:
      var position = 4
      while let write = WriteRecord(bytes, at: position) {
        guard rights.right(to: bytes.extracting(write.key)) >= .write else { return false }
        position = write.end
      }
      return true
    case .delete(let key, _): return rights.right(to: bytes.extracting(key)) >= .write
    case .deleteMany(let keys): return keys.allSatisfy(in: bytes) { rights.right(to: $0) >= .write }
    case .deleteAll: return rights.toAll >= .write
    case .count(let prefix): return rights.right(to: bytes.extracting(prefix)) >= .read
    case .scan(let request, _): return rights.right(to: bytes.extracting(request.prefix)) >= .read
    case .watch(let request): return rights.right(to: bytes.extracting(request.prefix)) >= .read
    case .apply:
      var position = 4
      while let record = ApplyRecord(bytes, at: position) {
        let needed: Right = record.kind == .check ? .read : .write
        guard rights.right(to: bytes.extracting(record.key)) >= needed else { return false }
        position = record.end
      }
      return true
    case .putUpload(let request): return rights.right(to: bytes.extracting(request.write.key)) >= .write
    }
  }
}

extension KeyList {
  fileprivate func allSatisfy(in bytes: RawSpan, _ condition: (RawSpan) -> Bool) -> Bool {
    var keys = self
    while let key = keys.next(bytes) {
      guard condition(bytes.extracting(key)) else { return false }
    }
    return true
  }
}
