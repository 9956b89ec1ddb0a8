import Storage
import Wire

/// A frame of a reply without its values, which are in files, and what was between them.
struct IncompleteFrame {
  /// Each value, with the bytes before it.
  fileprivate var pieces: [(bytes: [UInt8], value: MissingValue)] = []
  /// The bytes after the last value.
  fileprivate var end: [UInt8] = []
  /// Whether more frames of the reply follow.
  fileprivate var isFollowed = false

  /// Just a value, which is not sent as it is.
  init(_ value: MissingValue) { pieces = [([], value)] }

  /// - Parameters:
  ///   - frame: Begins at `start` in the buffer, and has room for the values.
  ///   - values: At least one, in order.
  init(_ frame: RawSpan, at start: Int, lacking values: [MissingValue]) {
    var position = 0
    for value in values {
      pieces.append((frame.extracting(position..<value.offset - start).toArray(), value))
      position = value.offset - start + value.value.byteCount
    }
    end = frame.extracting(position..<frame.byteCount).toArray()
    if case .frame(let header) = FrameScan(frame, at: 0, maxLength: .max) {
      isFollowed = header.flags & Frame.more != 0
    }
  }
}

/// A value in a file, and the room for it in a reply buffer.
struct MissingValue {
  let value: SeparatedValue
  let offset: Int
  let key: ArraySlice<UInt8>

  /// The message for a client when the value can't be read.
  func message(_ error: SeparatedValueError) -> String {
    "the value of \"\(String(decoding: key.prefix(128), as: UTF8.self))\": \(error)"
  }
}

/// Completes a frame with values that have to be read from a disk.
///
/// Made by a worker. Safe because only the thread that runs it uses what changes, until it posts the end of the pause to
/// the worker, and only the worker does after that.
final class ValueRead: @unchecked Sendable {
  /// The id of the frame's request.
  let id: UInt32
  /// The request, if this is its first frame.
  let request: PendingRequest?
  /// The newest commit that the frame reveals.
  let shownRevision: UInt64
  let store: Store
  private let frame: IncompleteFrame
  /// The complete frame.
  var bytes = ByteBuffer()
  /// Why a value can't be read, for the client; nil if all were read.
  private(set) var failure: String?

  init(
    _ frame: IncompleteFrame, of id: UInt32, _ store: Store, showing revision: UInt64, request: PendingRequest? = nil
  ) {
    self.frame = frame
    self.id = id
    self.store = store
    self.request = request
    shownRevision = revision
  }

  /// Whether more frames of the reply follow.
  var isFollowed: Bool { frame.isFollowed }

  /// Reads the values. Waits for the disk.
  func run() {
    for (piece, missing) in frame.pieces {
      bytes.append(piece)
      let offset = bytes.extend(by: missing.value.byteCount)
      do throws(SeparatedValueError) {
        unsafe try bytes.overwrite(at: offset, byteCount: missing.value.byteCount) {
          (room) throws(SeparatedValueError) in unsafe try missing.value.read(into: room)
        }
      } catch {
        failure = missing.message(error)
        return bytes.releaseStorage()
      }
    }
    bytes.append(frame.end)
  }
}
