/// The keys of one document in several indexes, which an `IndexKeyMaker` makes. One value is used for many documents,
/// one after the other, and reuses its memory.
package struct IndexKeys: Sendable {
  private struct Entry: Sendable {
    /// Where the index's keys are in `bytes`.
    var bytes = 0..<0
    var count = 0
    /// The number of the first key's end in `ends`, if there are several keys.
    var firstEnd = 0
    var multiFields: UInt32 = 0
    var isOverflow = false
  }

  private var entries: [Entry] = []
  /// Where the keys end of indexes that have several.
  private var ends: [Int] = []
  /// The number of bytes that keys take.
  private var byteCount = 0

  /// The bytes of all keys, one after the other, and unused ones after them.
  package private(set) var bytes: [UInt8] = []

  package init() {}

  // MARK: Reading

  /// Returns the number of keys in an index; 0 if the document isn't in it.
  package func count(of index: Int) -> Int { entries[index].count }

  /// Returns where a key is in `bytes`. The keys in an index are in ascending order, and different.
  package func range(of number: Int, in index: Int) -> Range<Int> {
    let entry = entries[index]
    precondition(number >= 0 && number < entry.count, "there is no such key")
    guard entry.count > 1 else { return entry.bytes }
    let end = entry.firstEnd + number
    return (number == 0 ? entry.bytes.lowerBound : ends[end - 1])..<ends[end]
  }

  /// Returns a copy of a key.
  package func key(_ number: Int, of index: Int) -> [UInt8] { Array(bytes[range(of: number, in: index)]) }

  /// Returns the fields that aren't a single value, as bits from the first field's, the lowest one, on: a field has
  /// more than one key, or its value is an array. There are none for the overflow key.
  ///
  /// Documents with the same keys have the same bits.
  package func multiFields(of index: Int) -> UInt32 { entries[index].multiFields }

  /// Returns whether the only key in an index is the overflow key.
  package func isOverflow(of index: Int) -> Bool { entries[index].isOverflow }

  /// Returns whether the keys in an index are the same as those of another document.
  /// - Complexity: O(*n*) in the size of the keys.
  package func isSame(_ index: Int, as other: IndexKeys) -> Bool {
    let (entry, otherEntry) = (entries[index], other.entries[index])
    // Keys are never the beginning of one another, so that their number and bytes say where they end.
    return entry.count == otherEntry.count
      && bytes.span.extracting(entry.bytes).order(other.bytes.span.extracting(otherEntry.bytes)) == 0
  }

  // MARK: Making

  /// Makes the overflow key the only key in each of this number of indexes.
  package mutating func setOverflow(inIndexes count: Int) {
    removeAll()
    for _ in 0..<count { appendOverflowKey() }
  }

  /// Removes the keys of all indexes.
  package mutating func removeAll() {
    entries.removeAll(keepingCapacity: true)
    ends.removeAll(keepingCapacity: true)
    byteCount = 0
  }

  /// Adds an index with keys that were made before.
  /// - Parameters:
  ///   - keys: The keys, one after the other.
  ///   - sizes: The size of each key. There are none if the document isn't in the index.
  package mutating func append(_ keys: Span<UInt8>, sizes: [Int], multiFields: UInt32) {
    var entry = Entry(count: sizes.count, firstEnd: ends.count, multiFields: multiFields)
    reserve(keys.count)
    for position in keys.indices { bytes[byteCount + position] = keys[position] }
    entry.bytes = byteCount..<byteCount + keys.count
    if sizes.count > 1 {
      var end = byteCount
      for size in sizes {
        end += size
        ends.append(end)
      }
    }
    byteCount += keys.count
    entries.append(entry)
  }

  /// Adds an index that the document isn't in.
  mutating func appendNoKeys() { entries.append(Entry()) }

  /// Adds an index with all combinations of its fields' keys, in order; or with the overflow key if there are too many
  /// or too long ones.
  @inline(__always)
  mutating func appendKeys(_ index: Span<IndexField>, _ keys: borrowing FieldKeys) {
    var entry = Entry()
    var (count, size, isOverflow) = (1, 0, false)
    for number in 0..<index.count {
      let field = keys[index[number].path]
      isOverflow = field.isOverflow || count &* field.count > IndexKeyMaker.maxKeyCount
      if isOverflow { break }
      count &*= field.count
      size &+= field.maxSize
      if field.isMulti { entry.multiFields |= 1 &<< UInt32(truncatingIfNeeded: number) }
    }
    guard !isOverflow, size <= IndexKeyMaker.maxKeySize else { return appendOverflowKey() }
    entry.count = count
    guard count == 1 else { return appendCombinations(index, keys, entry) }
    reserve(size)
    let (start, fieldCount) = (byteCount, index.count)
    byteCount = unsafe bytes.withUnsafeMutableBufferPointer { output in
      var position = start
      for number in 0..<fieldCount { unsafe keys.copy(0, of: index[number], to: output, at: &position) }
      return position
    }
    entry.bytes = start..<byteCount
    entries.append(entry)
  }

  /// Makes room for some more bytes, and for what copying in words writes behind them.
  @inline(__always)
  private mutating func reserve(_ size: Int) {
    let missing = byteCount &+ size &+ FieldKeys.copySlack &- bytes.count
    if missing > 0 { bytes += [UInt8](repeating: 0, count: max(missing, bytes.count)) }
  }

  @inline(never)
  private mutating func appendCombinations(
    _ index: Span<IndexField>, _ keys: borrowing FieldKeys, _ entry: Entry
  ) {
    var size = 0
    for number in 0..<index.count {
      let field = keys[index[number].path]
      size += field.totalSize * (entry.count / field.count)
    }
    guard size <= IndexKeyMaker.maxTotalKeySize else { return appendOverflowKey() }
    reserve(size)
    var (entry, position) = (entry, byteCount)
    entry.firstEnd = ends.count
    for combination in 0..<entry.count {
      // A combination has one digit for each field, the last one being the lowest.
      var (digits, rest) = (combination, entry.count)
      for number in 0..<index.count {
        let (field, fieldCount) = (index[number], keys[index[number].path].count)
        rest /= fieldCount
        let digit = digits / rest
        digits %= rest
        unsafe bytes.withUnsafeMutableBufferPointer { output in
          unsafe keys.copy(
            field.isDescending ? fieldCount - 1 - digit : digit, of: field, to: output, at: &position)
        }
      }
      ends.append(position)
    }
    entry.bytes = byteCount..<position
    byteCount = position
    entries.append(entry)
  }

  /// Adds an index with the overflow key.
  @inline(never)
  package mutating func appendOverflowKey() {
    reserve(1)
    bytes[byteCount] = IndexRange.overflowKey[0]
    entries.append(Entry(bytes: byteCount..<byteCount + 1, count: 1, isOverflow: true))
    byteCount += 1
  }
}
