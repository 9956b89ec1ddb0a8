import Storage
import Wire

/// A reply, or a part of one, without its values, which are in files: what was between them.
struct IncompleteReply {
  /// Each value, with the bytes before it.
  fileprivate var pieces: [(bytes: [UInt8], value: MissingValue)] = []
  /// The bytes after the last value.
  fileprivate var end: [UInt8] = []
  /// Just a value, which is not sent as it is.
  init(_ value: MissingValue) { pieces = [([], value)] }

  /// - Parameters:
  ///   - reply: Begins at `start` in the buffer, and has room for the values.
  ///   - values: At least one, in order.
  init(_ reply: RawSpan, at start: Int, lacking values: [MissingValue]) {
    var position = 0
    for value in values {
      pieces.append((reply.extracting(position..<value.offset - start).toArray(), value))
      position = value.offset - start + value.value.byteCount
    }
    end = reply.extracting(position..<reply.byteCount).toArray()
  }
}

/// A value in a file, and the room for it in a reply buffer.
struct MissingValue {
  let value: SeparatedValue
  let offset: Int
  let key: ArraySlice<UInt8>
  /// Whether it is JSON that must become a line.
  var isLine = false

  /// What a client is told when the value can't be read.
  func failure(_ error: SeparatedValueError) -> CommandFailure {
    CommandFailure(error, "the value of \"\(String(decoding: key.prefix(128), as: UTF8.self))\": ")
  }
}

extension CommandFailure {
  /// - Parameter subject: What the message begins with.
  init(_ error: SeparatedValueError, _ subject: String = "") {
    let code: ErrorCode =
      switch error {
      case .damaged, .failed: .valueDamaged
      case .unavailable: .tooManyRequests
      }
    self.init(code, "\(subject)\(error)")
  }
}

/// Completes a reply, or a part of one, with values that have to be read from a disk.
///
/// Made by a worker. Safe because only the thread that runs it uses what changes, until it posts the end of the pause to
/// the worker, and only the worker does after that.
final class ValueRead: @unchecked Sendable {
  /// The tag of the request.
  let tag: UInt32
  /// The request, if this is the first part of its reply.
  let request: PendingRequest?
  /// The newest commit that the reply reveals.
  let shownRevision: UInt64
  let store: Store
  /// Whether more parts of the reply follow.
  let isFollowed: Bool
  /// Whether other parts of the reply come before it.
  let isContinuation: Bool
  private let reply: IncompleteReply
  /// The complete reply.
  var bytes = ByteBuffer()
  /// Why a value can't be read; nil if all were read.
  private(set) var failure: CommandFailure?

  init(
    _ reply: IncompleteReply, of tag: UInt32, _ store: Store, showing revision: UInt64, isFollowed: Bool = false,
    isContinuation: Bool = false, request: PendingRequest? = nil
  ) {
    self.reply = reply
    self.tag = tag
    self.store = store
    self.isFollowed = isFollowed
    self.isContinuation = isContinuation
    self.request = request
    shownRevision = revision
  }

  /// Reads the values. Waits for the disk.
  func run() {
    for (piece, missing) in reply.pieces {
      bytes.append(piece)
      let offset = bytes.extend(by: missing.value.byteCount)
      do throws(SeparatedValueError) {
        unsafe try bytes.overwrite(at: offset, byteCount: missing.value.byteCount) {
          (room) throws(SeparatedValueError) in
          unsafe try missing.value.read(into: room)
          if missing.isLine { unsafe room.makeLine() }
        }
      } catch {
        failure = missing.failure(error)
        return bytes.releaseStorage()
      }
    }
    bytes.append(reply.end)
  }
}

extension UnsafeMutableRawBufferPointer {
  /// Makes JSON a line: it has the ends of lines only between its values, where spaces mean the same.
  func makeLine() {
    for index in indices where unsafe self[index] == 0x0A || self[index] == 0x0D { unsafe self[index] = 0x20 }
  }
}
