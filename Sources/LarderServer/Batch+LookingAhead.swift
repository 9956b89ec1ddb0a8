import Storage
import Wire

/// Looking ahead: the memory that requests on single keys will read is asked for before any of them is run, so that they wait for it
/// together and while other things are done. Nothing depends on it but speed.
extension Batch {
  /// Whether no more requests can be noted before `askForRecords`.
  @inline(__always)
  var hasLookedFarEnough: Bool { aheadCount == ahead.count }

  /// Looks at the requests that came from a connection, if the first one is on entries, and takes the lock of its store.
  /// - Returns: where the requests begin that were not looked at.
  mutating func lookAhead(_ bytes: RawSpan, of connection: borrowing Connection) -> Int {
    guard connection.phase == .open,
      case .frame(let first) = FrameScan(bytes, at: 0, largest: limits.maxFrameBytes),
      Self.isOnEntries(first.kind), let store = connection.stores[first.detail]?.store, held == nil || held === store
    else { return 0 }
    hold(store)
    return lookAhead(bytes, at: 0, store: first.detail, on: store)
  }

  /// Asks for the records of all requests that `lookAhead` has looked at.
  mutating func askForNotedRecords() {
    if let store = held { unsafe askForRecords(&store.map) }
  }

  /// Asks for the part of the index where the keys of the next requests belong, and notes them for `askForRecords`.
  /// - Parameter store: the store that is held, and its handle.
  /// - Returns: where the requests begin that were not looked at.
  mutating func lookAhead(_ bytes: RawSpan, at place: Int, store handle: UInt16, on store: Store) -> Int {
    var place = place
    while !hasLookedFarEnough, case .frame(let header) = FrameScan(bytes, at: place, largest: limits.maxFrameBytes),
      header.detail == handle
    {
      let body = header.body(at: place)
      if header.kind == Operation.get.rawValue, body.count <= Key.largest {
        unsafe note(bytes.extracting(unchecked: body), &store.map)
      } else if header.kind == Operation.put.rawValue, let write = WriteRecord(bytes, at: body.lowerBound) {
        unsafe note(bytes.extracting(unchecked: write.key), &store.map)
      }
      place &+= header.frameSize
    }
    return place
  }

  /// Asks for all that the next keys of a list need.
  /// - Returns: how many they are.
  mutating func lookAhead(_ keys: KeyList, of body: RawSpan, _ map: inout EntryMap) -> Int {
    var keys = keys
    while !hasLookedFarEnough, let key = keys.next(body) { note(body.extracting(key), &map) }
    return askForRecords(&map)
  }

  /// Asks for all that the next records of a write need.
  /// - Returns: how many they are.
  mutating func lookAhead(_ body: RawSpan, at place: Int, _ map: inout EntryMap) -> Int {
    var place = place
    while !hasLookedFarEnough, let write = WriteRecord(body, at: place) {
      note(body.extracting(write.key), &map)
      place = write.end
    }
    return askForRecords(&map)
  }

  @inline(__always)
  private mutating func note(_ key: RawSpan, _ map: inout EntryMap) {
    ahead[aheadCount] = map.aheadOfIndex(key)
    aheadCount &+= 1
  }

  /// Asks for the records that were noted.
  /// - Returns: how many they were.
  @discardableResult
  mutating func askForRecords(_ map: inout EntryMap) -> Int {
    for index in 0..<aheadCount { map.aheadOfRecord(ahead[index]) }
    defer { aheadCount = 0 }
    return aheadCount
  }
}
