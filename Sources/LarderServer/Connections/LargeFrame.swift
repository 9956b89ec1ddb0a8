import Platform
import Storage
import Wire

/// A large frame that is being received, in memory where a store can keep its value.
///
/// Owned by a `ConnectionInput`.
struct LargeFrame {
  /// The minimum size of such a frame, in bytes.
  static let minSize = 32 << 10
  /// The size of the room after an expected frame, in bytes. It shows whether the channel has more than the frame.
  static let spareSize = 1
  /// The maximum that is read at a time, in bytes. It takes about 0.1 ms.
  private static let maxSliceBytes = 256 << 10
  /// How many times what has arrived the memory may be large, because a frame may announce more than ever arrives.
  private static let maxGrowth = 4
  /// The minimum that counts as arrived, in bytes.
  private static let minArrived = 4 << 10

  let memory: ValueMemory
  /// The number of bytes that have arrived.
  private(set) var count = 0

  /// - Parameter frameSize: The size that the frame probably has.
  /// - Returns: Nil if the system has no memory.
  init?(expecting frameSize: Int) {
    guard let memory = ValueMemory(byteCount: frameSize + Self.spareSize) else { return nil }
    self.memory = memory
  }

  /// Returns how much of a frame to expect when its beginning has arrived: always more than that, whatever the beginning
  /// announces.
  static func room(for frameSize: Int, arrived byteCount: Int) -> Int {
    let expected = frameSize > byteCount ? frameSize : byteCount + minSize
    return min(expected, max(minArrived, byteCount) * maxGrowth)
  }

  /// What has arrived.
  @unsafe
  var bytes: UnsafeRawBufferPointer { unsafe memory.bytes(0..<count) }

  var isFull: Bool { count == memory.byteCount }

  /// Adds bytes that have been received elsewhere.
  /// - Precondition: There is room for them.
  mutating func append(_ bytes: RawSpan) {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: memory.room[count..<count + bytes.byteCount])
    unsafe bytes.withUnsafeBytes { bytes in unsafe room.copyMemory(from: bytes) }
    count += bytes.byteCount
  }

  /// Reads more from a channel.
  /// - Precondition: It isn't full.
  /// - Returns: The result, and whether there may be more.
  mutating func receive(from channel: borrowing ByteChannel) -> (ChannelTransfer, fillsRoom: Bool) {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: memory.room[count...].prefix(Self.maxSliceBytes))
    precondition(room.count > 0, "a full frame grows before more is received")
    let transfer = unsafe channel.receive(into: room)
    guard case .moved(let received) = transfer else { return (transfer, false) }
    count += received
    return (transfer, received == room.count)
  }
}
