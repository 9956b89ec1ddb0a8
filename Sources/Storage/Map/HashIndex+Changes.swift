extension HashIndex {
  /// Adds a record whose key has no record yet. Throws `outOfMemory`, with nothing changed.
  mutating func insert(_ handle: UInt32, hash: UInt32, in arena: borrowing Arena) throws(StorageError) {
    let index = Self.segment(of: hash)
    try makeRoom(inSegment: index, in: arena)
    unsafe (segments + index).pointee.entryCount &+= 1
    unsafe Self.place(handle, hash: hash, chunks: segments[index].chunks!, chunkCount: segments[index].chunkCount)
  }

  /// Takes out a record that is there; its key needn't be read.
  mutating func remove(_ handle: UInt32, hash: UInt32, in arena: borrowing Arena) {
    let index = Self.segment(of: hash)
    let segment = unsafe segments[index]
    var position = Self.firstChunk(of: hash, chunkCount: segment.chunkCount)
    while true {
      let chunk = unsafe HashChunk(at: segment.chunks! + position * HashChunk.byteCount)
      if let slot = Self.slot(of: handle, hash: hash, in: chunk) {
        chunk.set(slot, tag: 0, handle: 0)
        break
      }
      precondition(chunk.overflowCount > 0, "a record is missing from the hash index")
      chunk.overflowCount -= 1
      position += 1
      if position == Int(segment.chunkCount) { position = 0 }
    }
    unsafe (segments + index).pointee.entryCount -= 1
    shrinkIfSparse(segment: index, in: arena)
  }

  /// Puts another record of the same key in the place of one that is there.
  func replace(_ old: UInt32, with new: UInt32, hash: UInt32) {
    let segment = unsafe segments[Self.segment(of: hash)]
    var position = Self.firstChunk(of: hash, chunkCount: segment.chunkCount)
    while true {
      let chunk = unsafe HashChunk(at: segment.chunks! + position * HashChunk.byteCount)
      if let slot = Self.slot(of: old, hash: hash, in: chunk) {
        chunk.set(slot, tag: Self.tag(of: hash), handle: new)
        return
      }
      precondition(chunk.overflowCount > 0, "a record is missing from the hash index")
      position += 1
      if position == Int(segment.chunkCount) { position = 0 }
    }
  }

  private static func slot(of handle: UInt32, hash: UInt32, in chunk: HashChunk) -> Int? {
    var slots = chunk.slots(tagged: tag(of: hash))
    while let slot = slots.next() {
      if chunk.handle(slot) == handle { return slot }
    }
    return nil
  }

  /// Puts the record into the first chunk with room, counting it in every full one on the way.
  @inline(__always)
  static func place(_ handle: UInt32, hash: UInt32, chunks: UnsafeMutableRawPointer, chunkCount: UInt32) {
    var index = firstChunk(of: hash, chunkCount: chunkCount)
    while true {
      let chunk = unsafe HashChunk(at: chunks + index &* HashChunk.byteCount)
      var empty = chunk.emptySlots
      if let slot = empty.next() {
        chunk.set(slot, tag: tag(of: hash), handle: handle)
        return
      }
      chunk.overflowCount &+= 1
      index &+= 1
      if index == Int(chunkCount) { index = 0 }
    }
  }
}
