/// Cutting blocks and joining them again. Every function here keeps the marks of a block and of its neighbours in step.
extension Arena {
  /// A block from the bins, cut to size; 0 when none is large enough.
  mutating func takeFromBins(units: UInt32) -> UInt32 {
    let handle = findFree(units: units)
    guard handle != 0 else { return 0 }
    let available = self.units(ofFree: handle)
    unlink(handle, units: available)
    if available == Self.unitsInWholeChunk { chunkCameIntoUse() }
    unsafe setWord(handle, Self.inUse)
    if available > units {
      makeFree(handle + units, units: available - units)
    } else {
      markNeighbour(after: handle, units: units, previousIsFree: false)
    }
    return handle
  }

  /// Gives a block back and joins it with the free blocks on either side.
  mutating func free(_ handle: UInt32, units: UInt32) {
    noteFreed(units: units)
    var (start, size) = (handle, units)
    let next = handle &+ units
    if next & Self.unitMask != 0 {
      if unsafe word(next) & Self.inUse == 0 {
        let following = self.units(ofFree: next)
        unlink(next, units: following)
        size += following
      } else {
        unsafe setWord(next, word(next) | Self.previousIsFree)
      }
    }
    if unsafe word(handle) & Self.previousIsFree != 0 {
      let preceding = unsafe (address(handle) - 4).load(as: UInt32.self)
      start -= preceding
      unlink(start, units: preceding)
      size += preceding
    }
    if hand > Int(start), hand < Int(start) + Int(size) { hand = Int(start) }
    if size == Self.unitsInWholeChunk, releaseWholeChunk(start) { return }
    makeFree(start, units: size)
  }

  /// Writes the marks of a free block and puts it into its bin. The word of the block after it must already say, or be
  /// made to say, that a free block comes before.
  mutating func makeFree(_ handle: UInt32, units: UInt32) {
    unsafe setWord(handle, units)
    if (handle &+ units) & Self.unitMask != 0 {
      unsafe (address(handle) + Int(units) * 8 - 4).storeBytes(of: units, as: UInt32.self)
    }
    link(handle, units: units)
  }

  func units(ofFree handle: UInt32) -> UInt32 { unsafe word(handle) }

  /// The smallest block that fits, or nearly: within a bin of mixed sizes a few are tried before the next bin is.
  private func findFree(units: UInt32) -> UInt32 {
    let own = ArenaBins.index(of: units)
    if let handle = firstFit(units: units, bin: own, attempts: 8) { return handle }
    if let bin = bins.firstOccupied(from: own + 1) { return bins.first(in: bin) }
    // Nothing larger: before a new chunk is mapped, the whole of the own bin deserves a look.
    return firstFit(units: units, bin: own, attempts: .max) ?? 0
  }

  private func firstFit(units: UInt32, bin: Int, attempts: Int) -> UInt32? {
    var (handle, left) = (bins.first(in: bin), attempts)
    while handle != 0, left > 0 {
      if self.units(ofFree: handle) >= units { return handle }
      handle = unsafe next(handle)
      left -= 1
    }
    return nil
  }

  private func markNeighbour(after handle: UInt32, units: UInt32, previousIsFree: Bool) {
    let next = handle &+ units
    guard next & Self.unitMask != 0 else { return }
    let mark = unsafe word(next) & ~Self.previousIsFree
    unsafe setWord(next, previousIsFree ? mark | Self.previousIsFree : mark)
  }

  // A free block of one unit has no room for links: it is in no bin, and waits for a neighbour to be freed.

  private mutating func link(_ handle: UInt32, units: UInt32) {
    guard units > 1 else { return }
    let bin = ArenaBins.index(of: units)
    let first = bins.first(in: bin)
    unsafe setNext(handle, first)
    unsafe setPrevious(handle, 0)
    if first != 0 { unsafe setPrevious(first, handle) }
    bins.setFirst(handle, in: bin)
  }

  private mutating func unlink(_ handle: UInt32, units: UInt32) {
    guard units > 1 else { return }
    let (next, previous) = unsafe (self.next(handle), self.previous(handle))
    if next != 0 { unsafe setPrevious(next, previous) }
    if previous != 0 {
      unsafe setNext(previous, next)
    } else {
      bins.setFirst(next, in: ArenaBins.index(of: units))
    }
  }

  @unsafe @inline(__always)
  private func word(_ handle: UInt32) -> UInt32 { unsafe address(handle).load(as: UInt32.self) }

  @unsafe @inline(__always)
  private func setWord(_ handle: UInt32, _ word: UInt32) {
    unsafe address(handle).storeBytes(of: word, as: UInt32.self)
  }

  @unsafe private func next(_ handle: UInt32) -> UInt32 {
    unsafe address(handle).load(fromByteOffset: 4, as: UInt32.self)
  }

  @unsafe private func previous(_ handle: UInt32) -> UInt32 {
    unsafe address(handle).load(fromByteOffset: 8, as: UInt32.self)
  }

  @unsafe private func setNext(_ handle: UInt32, _ next: UInt32) {
    unsafe address(handle).storeBytes(of: next, toByteOffset: 4, as: UInt32.self)
  }

  @unsafe private func setPrevious(_ handle: UInt32, _ previous: UInt32) {
    unsafe address(handle).storeBytes(of: previous, toByteOffset: 8, as: UInt32.self)
  }
}
