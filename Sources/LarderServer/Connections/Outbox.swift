// What happens to a client that doesn't read its replies:
//
// When the socket's buffer is full, `Connection.send` keeps the rest in the connection's outbox, and the server stops
// reading from this client. Requests that have arrived are executed until `limits.output-bytes` of replies are waiting;
// the others stay in the input. After `limits.write-timeout` without progress the connection is closed. If the outboxes
// of a worker exceed its share of memory, the connection that has been stalled longest is closed first. A reply stream
// needs the client's credit: without it nothing more is produced, and the stream ends with `answerExpired` after
// `limits.answer-timeout`. No other client waits for any of this, and writes that were executed stay. See `Connection`,
// `EventLoop`, `ConnectionTimeout`, `BufferAccounting` and `Session+Streams`.

import Platform
import Storage
import Wire

/// The replies of a connection that its channel did not accept yet: bytes, and large values between them, which are sent
/// from where they are.
///
/// They are sent in slices, so that a large reply does not delay other connections. A value stays in memory until it
/// has been sent, even if its entry is overwritten or deleted. Owned by a `Connection`.
struct Outbox: ~Copyable {
  /// The maximum size of a slice, in bytes. Sending one takes about 0.1 ms, and smaller ones take longer in all.
  static let maxSliceBytes = 512 << 10
  /// The storage of replies that is kept rather than copied, even if they use little of it.
  private static let maxSpareBytes = 4 << 10

  private var bytes = ByteBuffer()
  /// The values, with offsets from the first byte that was in `bytes`.
  private var values: [AttachedValue] = []
  /// The number of bytes that have been removed from `bytes`.
  private var consumedCount = 0
  /// How much of the first value has been sent.
  private var sentValueCount = 0

  /// The size of everything, in bytes.
  private(set) var count = 0
  /// How much of that are large values, in bytes.
  private(set) var valueByteCount = 0
  /// Whether the channel has accepted the last slice completely, so that it may accept another one at once.
  private(set) var hasSentSlice = false

  var isEmpty: Bool { count == 0 }

  /// Moves replies to the end.
  mutating func append(_ replies: inout ReplyBuffer) {
    var attached = replies.takeAttachedValues()
    if isEmpty, replies.bytes.capacity <= 2 * replies.bytes.count + Self.maxSpareBytes {
      count = replies.bytes.count
      swap(&bytes, &replies.bytes)
      swap(&values, &attached)
      for value in values { add(value.value.byteCount) }
    } else {
      for value in attached {
        values.append(AttachedValue(value: value.value, offset: consumedCount + bytes.count + value.offset))
        add(value.value.byteCount)
      }
      count += replies.bytes.count
      replies.bytes.withSpan { bytes.append($0) }
    }
    replies.bytes.removeAll()
  }

  private mutating func add(_ byteCount: Int) {
    count += byteCount
    valueByteCount += byteCount
  }

  /// Sends a slice.
  mutating func send(to channel: borrowing ByteChannel) -> ChannelTransfer {
    hasSentSlice = false
    var pieces = SendPieces()
    addPieces(to: &pieces)
    let transfer = channel.send(&pieces)
    if case .moved(let sentCount) = transfer {
      consume(sentCount)
      hasSentSlice = sentCount == pieces.byteCount && !isEmpty
    }
    return transfer
  }

  private func addPieces(to pieces: inout SendPieces) {
    var (index, position, start) = (0, 0, sentValueCount)
    while !pieces.isFull, pieces.byteCount < Self.maxSliceBytes {
      let room = Self.maxSliceBytes - pieces.byteCount
      let end = index < values.count ? values[index].offset - consumedCount : bytes.count
      if position < end {
        let next = min(end, position + room)
        unsafe pieces.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[position..<next]))
        position = next
      } else if index < values.count {
        let value = unsafe values[index].value.bytes
        unsafe pieces.append(UnsafeRawBufferPointer(rebasing: value[start..<min(value.count, start + room)]))
        (index, start) = (index + 1, 0)
      } else {
        return
      }
    }
  }

  private mutating func consume(_ sentCount: Int) {
    count -= sentCount
    var rest = sentCount
    while rest > 0 {
      let end = values.first.map { $0.offset - consumedCount } ?? bytes.count
      if end > 0 {
        let part = min(rest, end)
        bytes.consume(part)
        consumedCount += part
        rest -= part
      } else {
        let part = min(rest, values[0].value.byteCount - sentValueCount)
        sentValueCount += part
        valueByteCount -= part
        rest -= part
        if sentValueCount == values[0].value.byteCount {
          values.removeFirst()
          sentValueCount = 0
        }
      }
    }
    if isEmpty {
      bytes.releaseStorage()
      values = []
      consumedCount = 0
    }
  }
}

/// A large value that is sent from where it is.
struct AttachedValue {
  /// The size of the smallest value that is not in its entry's record, in bytes.
  static let minSize = 32 << 10

  let value: LargeValue
  /// Where it belongs: its offset in the bytes around it, from which it is left out.
  let offset: Int
}
