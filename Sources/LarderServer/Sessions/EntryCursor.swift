import Storage
import Wire

/// Which entries a stream has left to send.
enum EntryCursor {
  case scan(Scan)
  /// The entries with these keys, of the request itself.
  case keys(KeyList)
  /// The entries with these keys.
  case keptKeys(KeptKeys)
  /// The entries at these handles, 0 for absent ones, from `next` on.
  case handles([UInt32], next: Int)

  /// The number of keys that it has left.
  var keyCount: Int {
    switch self {
    case .scan: 0
    case .keys(let keys): keys.remaining
    case .keptKeys(let keys): keys.list.remaining
    case .handles(let handles, _): handles.count
    }
  }

  /// The size of the keys that are not looked up, in bytes.
  var keptKeyByteCount: Int { if case .keptKeys(let keys) = self { keys.bytes.count } else { 0 } }

  var isEmpty: Bool {
    switch self {
    case .scan(let scan): scan.ranks.isEmpty
    case .keys(let keys): keys.remaining == 0
    case .keptKeys(let keys): keys.list.remaining == 0
    case .handles(let handles, let next): next == handles.count
    }
  }

  /// Whether looking up its entries takes longer than they are long.
  var isSlow: Bool { if case .keptKeys = self { true } else { false } }

  /// The keys of a get-many that are not looked up yet. Looking them up part by part delays no other client.
  struct KeptKeys {
    /// A key list, as in a request.
    fileprivate(set) var bytes: [UInt8]
    var list: KeyList

    /// - Parameter offset: Where the next key is in the request.
    init(_ list: KeyList, of request: RawSpan, at offset: Int) {
      var buffer = ByteBuffer()
      buffer.append(UInt32(list.remaining))
      buffer.append(request.extracting(offset..<request.byteCount))
      let bytes = buffer.toArray()
      guard let rest = unsafe KeyList(bytes.span.bytes) else { preconditionFailure("the list has a count") }
      (self.bytes, self.list) = (bytes, rest)
    }
  }

  /// The entries of a range of ranks, from the last one backward if `isReverse`.
  struct Scan {
    private(set) var ranks: Range<Int>
    let isReverse: Bool
    let isKeysOnly: Bool

    init(ranks: Range<Int>, isReverse: Bool, isKeysOnly: Bool) {
      (self.ranks, self.isReverse, self.isKeysOnly) = (ranks, isReverse, isKeysOnly)
    }

    /// Removes the ranks that are visited first.
    mutating func dropFirst(_ count: Int) {
      ranks = isReverse ? ranks.lowerBound..<ranks.upperBound - count : ranks.lowerBound + count..<ranks.upperBound
    }
  }
}
