/// The connections of one worker, and the buffers in which its event loop serves them.
struct WorkerConnections: ~Copyable {
  var table = ConnectionTable()
  /// What a wakeup has read. Empty in between.
  var batch = ReadBatch()
  /// The replies to a connection that is served outside of the batch. Empty in between.
  var spareReplies = ReplyBuffer()

  var isEmpty: Bool { table.count == 0 }

  /// The slot of the connection whose client has left replies unread for the longest time; nil if none has.
  var longestStalled: Int? {
    var longest: (slot: Int, since: UInt64)?
    for slot in 0..<table.capacity where table.isOccupied(slot) {
      guard let since = table[slot].stalledSince, since < longest?.since ?? .max else { continue }
      longest = (slot, since)
    }
    return longest?.slot
  }

  /// Releases the memory of the spare replies if a connection has made it large.
  mutating func releaseLargeBuffer() {
    if spareReplies.bytes.capacity > ReadBatch.maxKeptReplyBytes { spareReplies.bytes.releaseStorage() }
  }
}
