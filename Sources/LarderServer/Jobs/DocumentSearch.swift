import Documents
import Storage

/// Where a job finds the documents that it must look at, and how far it has come: a plan for a snapshot.
///
/// A plan that reads ranges of one index, or of keys, is followed entry by entry. For a union, an intersection, or an
/// index that may have a document twice, the handles of all documents are gathered first.
///
/// Owned by a `DocumentJob`. Its functions that take a map are called with the lock of the store, and those that take a
/// store are not.
struct DocumentSearch {
  /// Ranks of an index, or of the entries by their keys.
  private struct Segment {
    /// nil for the entries.
    let index: IndexView?
    var ranks: Range<Int>
  }

  /// The view of the store that has the documents.
  let snapshot: Snapshot
  private let isReversed: Bool
  /// The number of an index's first fields that make groups, of which the first documents are looked at; nil for all
  /// documents.
  private let groupFieldCount: Int?
  /// What is left to look at. The next segment is the last element.
  private var segments: [Segment] = []
  private var gatherer: HandleGatherer?
  /// The documents at these handles, 0 for none; nil if the segments are followed.
  private var handles: [UInt32]?
  private var nextHandle = 0
  /// The number of keys of indexes that were looked at.
  private(set) var examinedKeys = 0

  /// Looks at all entries.
  init(all snapshot: Snapshot) {
    self.snapshot = snapshot
    isReversed = false
    groupFieldCount = nil
    segments = [Segment(index: nil, ranks: 0..<snapshot.count)]
  }

  /// - Parameter handles: The handles of the documents; 0 for one that is gone.
  init(_ handles: [UInt32], in snapshot: Snapshot) {
    self.snapshot = snapshot
    isReversed = false
    groupFieldCount = nil
    self.handles = handles
  }

  /// - Parameter indexes: What the snapshot sees of the store's indexes, as the planner got them.
  init(_ plan: FindPlan, _ indexes: [IndexView], _ ranks: inout RankReader) throws(StorageError) {
    snapshot = ranks.snapshot
    isReversed = plan.isReversed
    groupFieldCount = plan.groupFieldCount
    switch plan.source {
    case .nothing: break
    case .ids(let ranges):
      for range in ranges { segments.append(Segment(index: nil, ranks: try ranks.ranks(of: range, inIndex: nil))) }
    case .index(let number, let ranges)
    where plan.isOrdered || plan.groupFieldCount != nil || indexes[number].planned.multiFields == 0:
      let index = indexes[number]
      for range in index.rangesToRead(ranges) {
        segments.append(Segment(index: index, ranks: try ranks.ranks(of: range, inIndex: number)))
      }
    case .index, .union, .intersection:
      gatherer = try HandleGatherer(plan.source, indexes, &ranks)
    }
    segments.removeAll { $0.ranks.isEmpty }
    // The next one is taken off the end.
    if !isReversed { segments.reverse() }
  }

  var isAtEnd: Bool {
    if let handles { return nextHandle == handles.count }
    return gatherer == nil && segments.isEmpty
  }

  /// The number of keys and handles that are left to look at; nil while it is not known.
  var count: Int? {
    if let handles { return handles.count - nextHandle }
    return gatherer == nil ? segments.reduce(0) { $0 + $1.ranks.count } : nil
  }

  /// The size of what is kept, in bytes.
  var keptByteCount: Int {
    (gatherer?.keptByteCount ?? 0) + (handles?.count ?? 0) * MemoryLayout<UInt32>.stride
  }

  /// Whether one document of each group is looked at.
  var visitsGroups: Bool { groupFieldCount != nil }

  // MARK: Dividing

  /// Splits the remaining documents into consecutive searches of about the same size.
  /// - Precondition: The documents have been counted.
  mutating func divide(into count: Int) -> [DocumentSearch] {
    let total = self.count ?? 0
    return (1...count).map { number in
      // The part is what comes before the rest.
      let rest = total - total * number / count
      return takeFirst((self.count ?? 0) - rest)
    }
  }

  /// Removes the first documents.
  /// - Returns: A search for them.
  private mutating func takeFirst(_ count: Int) -> DocumentSearch {
    var part = self
    part.examinedKeys = 0
    if let handles {
      part.handles = Array(handles[nextHandle..<nextHandle + count])
      part.nextHandle = 0
      nextHandle += count
    } else {
      part.segments = []
      var rest = count
      while rest > 0, let last = segments.indices.last {
        var segment = segments[last]
        let taken = min(rest, segment.ranks.count)
        segment.ranks = isReversed ? segment.ranks.suffix(taken) : segment.ranks.prefix(taken)
        part.segments.append(segment)
        drop(taken, ofSegment: last)
        rest -= taken
      }
      part.segments.reverse()
    }
    return part
  }

  // MARK: Skipping

  /// Leaves out the documents that come first.
  /// - Precondition: They have been counted.
  mutating func dropFirst(_ count: Int) {
    var rest = count
    while rest > 0, let last = segments.indices.last {
      let dropped = min(rest, segments[last].ranks.count)
      drop(dropped, ofSegment: last)
      rest -= dropped
    }
  }

  private mutating func drop(_ count: Int, ofSegment index: Int) {
    let ranks = segments[index].ranks
    segments[index].ranks = isReversed ? ranks.dropLast(count) : ranks.dropFirst(count)
    if segments[index].ranks.isEmpty { segments.remove(at: index) }
  }

  // MARK: Looking at documents

  /// Gathers handles for a while, if that is necessary.
  /// - Returns: Whether there was something to gather.
  mutating func gather(from store: Store, now: UInt64) throws(StorageError) -> Bool {
    guard var gatherer = self.gatherer.take() else { return false }
    try gatherer.gather(from: store, in: snapshot, now: now)
    examinedKeys = gatherer.examinedKeys
    if let handles = gatherer.takeResult() { self.handles = handles } else { self.gatherer = gatherer }
    return true
  }

  /// What becomes of a document that is visited.
  enum Visit {
    /// The next one is visited.
    case next
    case stop
    /// No other one is visited, and this one is visited again.
    case refuse
  }

  /// Calls `body` with the next documents. Some entries may be no documents.
  mutating func visitNext(
    _ maxCount: Int, in map: inout EntryMap, now: UInt64, _ body: (EntryHead, EntryView) -> Visit
  ) throws(StorageError) {
    guard handles == nil else { return try visitHandles(maxCount, in: &map, now: now, body) }
    guard let last = segments.indices.last else { return }
    let ranks = segments[last].ranks
    if let groupFieldCount, let index = segments[last].index {
      return try visitGroups(maxCount, by: groupFieldCount, ranks, of: index, in: map, body)
    }
    let next = isReversed ? ranks.suffix(maxCount) : ranks.prefix(maxCount)
    var isRefused = false
    func visit(_ handle: UInt32, _ entry: EntryView) -> Bool {
      let visit = body(EntryHead(handle, entry), entry)
      if visit == .refuse { isRefused = true }
      return visit == .next
    }
    var count: Int
    if let index = segments[last].index {
      count = try map.scan(ranks: next, of: index, reverse: isReversed, in: snapshot, now: now, visit)
    } else {
      count = try map.scanHandles(ranks: next, reverse: isReversed, in: snapshot, now: now, visit)
    }
    if isRefused { count -= 1 }
    if segments[last].index != nil { examinedKeys += count }
    drop(count, ofSegment: last)
  }

  /// The number of groups that are visited under one acquisition of the store's lock: each takes about a microsecond.
  private static let maxGroupCount = 64

  /// Calls `body` with the first documents of the next groups. None has expired, because those that were due were removed
  /// before the snapshot began.
  private mutating func visitGroups(
    _ maxCount: Int, by fieldCount: Int, _ ranks: Range<Int>, of index: IndexView, in map: borrowing EntryMap,
    _ body: (EntryHead, EntryView) -> Visit
  ) throws(StorageError) {
    var (groupCount, documentCount) = (0, 0)
    try map.scanGroups(ranks: ranks, by: fieldCount, of: index, in: snapshot) { handle, entry, count in
      let visit = body(EntryHead(handle, entry, documentCount: count), entry)
      guard visit != .refuse else { return false }
      groupCount += 1
      documentCount += count
      return visit == .next && groupCount < min(maxCount, Self.maxGroupCount)
    }
    examinedKeys += groupCount
    drop(documentCount, ofSegment: segments.count - 1)
  }

  private mutating func visitHandles(
    _ maxCount: Int, in map: inout EntryMap, now: UInt64, _ body: (EntryHead, EntryView) -> Visit
  ) throws(StorageError) {
    guard let handles else { return }
    try map.check(snapshot)
    let end = min(handles.count, nextHandle + maxCount)
    while nextHandle < end {
      let handle = handles[nextHandle]
      if handle != 0 {
        let entry = map.entry(at: handle)
        let visit = entry.expiry == 0 || entry.expiry > now ? body(EntryHead(handle, entry), entry) : .next
        if visit != .refuse { nextHandle += 1 }
        if visit != .next { return }
      } else {
        nextHandle += 1
      }
    }
  }
}

/// Gathers the handles of documents that several ranges have, once each.
private struct HandleGatherer {
  private enum Step {
    case read(IndexView?, [Range<Int>])
    case sort
    case union(Int)
    case intersection(Int)
  }

  /// The steps that are left. The next one is the last element.
  private var steps: [Step] = []
  /// What each part has, sorted but for the last one while it is read.
  private var parts: [[UInt32]] = []
  private(set) var examinedKeys = 0

  /// The number of keys that are read under one acquisition of the store's lock.
  private static let maxCount = 2_048

  init(_ source: FindPlan.Source, _ indexes: [IndexView], _ ranks: inout RankReader) throws(StorageError) {
    try append(source, indexes, &ranks)
    steps.reverse()
  }

  private mutating func append(
    _ source: FindPlan.Source, _ indexes: [IndexView], _ reader: inout RankReader
  ) throws(StorageError) {
    switch source {
    case .nothing: steps += [.read(nil, []), .sort]
    case .ids(let ranges):
      var ranks: [Range<Int>] = []
      for range in ranges { ranks.append(try reader.ranks(of: range, inIndex: nil)) }
      steps += [.read(nil, ranks), .sort]
    case .index(let number, let ranges):
      var ranks: [Range<Int>] = []
      for range in indexes[number].rangesToRead(ranges) { ranks.append(try reader.ranks(of: range, inIndex: number)) }
      steps += [.read(indexes[number], ranks), .sort]
    case .union(let sources):
      for source in sources { try append(source, indexes, &reader) }
      steps.append(.union(sources.count))
    case .intersection(let sources):
      for source in sources { try append(source, indexes, &reader) }
      steps.append(.intersection(sources.count))
    }
  }

  var keptByteCount: Int { parts.reduce(0) { $0 + $1.count } * MemoryLayout<UInt32>.stride }

  /// Returns the handles, once all are gathered.
  mutating func takeResult() -> [UInt32]? { steps.isEmpty ? parts.removeLast() : nil }

  mutating func gather(from store: Store, in snapshot: Snapshot, now: UInt64) throws(StorageError) {
    guard let step = steps.popLast() else { return }
    switch step {
    case .read(let index, var ranks):
      // The first piece of a part.
      if parts.isEmpty || isPartComplete { parts.append([]) }
      isPartComplete = false
      guard let first = ranks.first else { return }
      var part = parts.removeLast()
      let count = try store.accessInTurn { map throws(StorageError) in
        let next = first.prefix(Self.maxCount)
        func add(_ handle: UInt32, _ entry: EntryView) -> Bool {
          part.append(handle)
          return true
        }
        if let index { return try map.scan(ranks: next, of: index, reverse: false, in: snapshot, now: now, add) }
        return try map.scanHandles(ranks: next, reverse: false, in: snapshot, now: now, add)
      }
      parts.append(part)
      if index != nil { examinedKeys += count }
      ranks[0] = first.dropFirst(count)
      if ranks[0].isEmpty { ranks.removeFirst() }
      steps.append(.read(index, ranks))
    case .sort:
      var part = parts.removeLast()
      part.sort()
      parts.append(part.withoutDuplicates)
      isPartComplete = true
    case .union(let count):
      var union = Array(parts.suffix(count).joined())
      parts.removeLast(count)
      union.sort()
      parts.append(union.withoutDuplicates)
    case .intersection(let count):
      let sets = parts.suffix(count).sorted { $0.count < $1.count }
      parts.removeLast(count)
      parts.append(sets.dropFirst().reduce(sets.first ?? []) { $0.intersection($1) })
    }
  }

  /// Whether the last part has been read.
  private var isPartComplete = true
}

extension [UInt32] {
  /// Numbers that are sorted, each once.
  fileprivate var withoutDuplicates: [UInt32] {
    var result: [UInt32] = []
    result.reserveCapacity(count)
    for number in self where number != result.last { result.append(number) }
    return result
  }

  /// Returns the numbers that both have. Both are sorted.
  fileprivate func intersection(_ other: [UInt32]) -> [UInt32] {
    var result: [UInt32] = []
    var next = 0
    for number in self {
      while next < other.count, other[next] < number { next += 1 }
      if next < other.count, other[next] == number { result.append(number) }
    }
    return result
  }
}

extension IndexView {
  /// The ranges to read, with that of the documents which have no keys of their own.
  fileprivate func rangesToRead(_ ranges: [KeyRange]) -> [KeyRange] {
    planned.overflowCount > 0 ? [.overflow] + ranges : ranges
  }
}

/// Reads the ranks of keys for the planner and for the search. Each call locks the store for a few microseconds.
///
/// The planner counts the ranges that the search then reads, so the latest ranks are kept.
struct RankReader: KeyCounter {
  let snapshot: Snapshot
  private let store: Store
  private let indexes: [IndexView]
  private var known: [(range: KeyRange, index: Int?, ranks: Range<Int>)] = []

  /// The number of ranges that may still be read.
  private var remainingCount: Int
  /// Whether the planner wanted to read more ranges.
  private(set) var isExhausted = false

  private static let maxKnownCount = 16

  /// - Parameter maxCount: The number of ranges that may be read.
  init(_ store: Store, _ indexes: [IndexView], in snapshot: Snapshot, maxCount: Int) {
    remainingCount = maxCount
    self.store = store
    self.indexes = indexes
    self.snapshot = snapshot
  }

  mutating func count(_ range: KeyRange, ofIndex number: Int?) -> Int {
    guard remainingCount > 0 else {
      isExhausted = true
      return 0
    }
    remainingCount -= 1
    // If the snapshot has ended, whoever reads it next finds that out.
    return (try? ranks(of: range, inIndex: number).count) ?? 0
  }

  mutating func groupCount(_ ranges: [KeyRange], ofIndex number: Int, fieldCount: Int) -> Int {
    do throws(StorageError) {
      var ranks: [Range<Int>] = []
      for range in ranges { ranks.append(try self.ranks(of: range, inIndex: number)) }
      return try store.accessInTurn { map throws(StorageError) in
        try map.estimatedGroupCount(ranks: ranks, by: fieldCount, of: indexes[number], in: snapshot)
      }
    } catch {
      // Whoever reads the snapshot next finds out that it has ended.
      return 0
    }
  }

  /// - Parameter number: The number of the index; nil for the entries by their keys.
  mutating func ranks(of range: KeyRange, inIndex number: Int?) throws(StorageError) -> Range<Int> {
    if number == nil, range == .all { return 0..<snapshot.count }
    if let known = known.first(where: { $0.index == number && $0.range == range }) { return known.ranks }
    let ranks = try store.accessInTurn { map throws(StorageError) in
      guard let number else { return try map.ranks(ofIDs: range, in: snapshot) }
      return try map.ranks(of: range, in: indexes[number], of: snapshot)
    }
    if known.count < Self.maxKnownCount { known.append((range, number, ranks)) }
    return ranks
  }
}
