import Glibc
import Storage
import Wire

@testable import LarderServer

struct TextSession: Session {
  typealias C = TextCodec
}

/// A protocol of lines, which shows that a protocol is only a codec:
///
///     use STORE       +        or -CODE MESSAGE
///     get KEY         =VALUE   or -notFound
///     put KEY VALUE   +REVISION
///     delete KEY      +1
///     count PREFIX    +NUMBER
///     list PREFIX     KEY=VALUE lines, then a line with a point
///     many KEY,KEY…   likewise, without keys; a missing entry is a line with a dash
enum TextCodec: Codec {
  struct Line: EncodedRequest {
    let size: Int
    let operation: UInt8
    /// The range of the words after the first one, in the line.
    let words: Range<Int>
    var tag: UInt32 { 0 }
    var store: UInt16 { operation == Operation.storeOpen.rawValue || operation == 0 ? 0 : 1 }
    var isRegular: Bool { true }
    func body(at offset: Int) -> Range<Int> { offset..<offset + size - 1 }
  }

  static var hasGreeting: Bool { false }
  static var isOrdered: Bool { true }

  // MARK: Requests

  private static let operations: [String: Operation] = [
    "use": .storeOpen, "get": .get, "put": .put, "delete": .delete, "count": .count, "list": .all, "many": .getMany,
  ]

  static func maxRequestSize(_ limits: borrowing ServerLimits, isStranger: Bool) -> Int { limits.maxFrameBytes }

  static func scan(_ bytes: RawSpan, at offset: Int, maxSize: Int) -> RequestScan<Line> {
    guard let end = bytes.index(of: UInt8(ascii: "\n"), from: offset) else {
      let size = bytes.byteCount - offset
      if size >= maxSize { return .invalid(CommandFailure(.frameLength, "a line has \(size) bytes or more")) }
      return .partial(size: 0)
    }
    let wordEnd = min(bytes.index(of: UInt8(ascii: " "), from: offset) ?? end, end)
    let operation = operations[bytes.extracting(offset..<wordEnd).toString()]
    return .request(
      Line(
        size: end + 1 - offset, operation: operation?.rawValue ?? 0,
        words: min(wordEnd + 1, end) - offset..<end - offset))
  }

  static func key(of request: Line, _ bytes: RawSpan) -> Range<Int>? {
    request.operation == Operation.get.rawValue ? request.words : nil
  }

  static func command(of request: Line, _ bytes: RawSpan) throws(CommandFailure) -> Command {
    switch Operation(rawValue: request.operation) {
    case .get: return .get(key: request.words)
    case .delete: return .delete(key: request.words, EntryCondition())
    case .count: return .count(prefix: request.words)
    case .all: return .scan(ScanRequest(prefix: request.words), isPage: false)
    case .put:
      guard let space = bytes.index(of: UInt8(ascii: " "), from: request.words.lowerBound) else {
        throw CommandFailure(.malformed, "put takes a key and a value")
      }
      return .put(
        WriteRecord(kind: .single, key: request.words.lowerBound..<space, value: space + 1..<request.words.upperBound))
    default: throw CommandFailure(.unknownOperation)
    }
  }

  static func execute(
    _ request: Line, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    do throws(CommandFailure) {
      guard request.operation == Operation.storeOpen.rawValue else {
        if request.store == 1, let store = connection.stores[1]?.store {
          return TextSession().refuse(
            "write to store \(store.name)", request, of: &connection, on: &executor, into: &replies)
        }
        throw CommandFailure(.unknownOperation, "use a store, then get, put, delete, count, list")
      }
      let name: StoreName
      do throws(StorageError) { name = try StoreName(bytes.extracting(request.words).toString()) } catch {
        throw CommandFailure(error)
      }
      if connection.stores[1] != nil { connection.stores.close(1) }
      _ = try executor.openStore(name, of: &connection.stores, connection.grants)
      replies.bytes.append("+\n")
      return .done
    } catch {
      append(error, to: request.tag, into: &replies.bytes)
      return .replied(failure: error.code)
    }
  }

  // MARK: Replies

  static func append(_ outcome: CommandOutcome, to request: UInt32, now: UInt64, into replies: inout ReplyBuffer) {
    switch outcome {
    case .number(let number): replies.bytes.append("+\(number)\n")
    case .entry(let entry):
      replies.bytes.append("=")
      append(entry, &replies)
      replies.bytes.append("\n")
    case .absent: append(CommandFailure(.notFound), to: request, into: &replies.bytes)
    case .range: break
    }
  }

  static func append(_ outcome: LateOutcome, to request: UInt32, into replies: inout ReplyBuffer) {}

  static func append(_ failure: CommandFailure, to request: UInt32?, into bytes: inout ByteBuffer) {
    bytes.append("-\(failure.code) \(failure.message)\n")
  }

  private static func append(_ entry: EntryView, _ replies: inout ReplyBuffer) {
    if let value = unsafe entry.value {
      unsafe replies.bytes.append(value)
    } else if let value = entry.separatedValue {
      unsafe replies.leaveRoom(for: value, key: entry.key)
    }
  }

  static func beginPart(
    of request: UInt32, isFirst: Bool, through throughRevision: UInt64?, _ limits: borrowing ServerLimits,
    into replies: inout ReplyBuffer
  ) -> StreamPart {
    let start = replies.bytes.count
    return StreamPart(
      tag: request, isFirst: isFirst, start: start, payloadStart: start, recordsStart: start, maxEnd: start + 65_536)
  }

  static func append(
    _ entry: EntryView?, hasKey: Bool, hasValue: Bool, to part: StreamPart, now: UInt64, into replies: inout ReplyBuffer
  ) -> Bool {
    guard part.fits(0, in: replies) else { return false }
    if let entry {
      if hasKey { unsafe replies.bytes.append(entry.key) }
      replies.bytes.append("=")
      append(entry, &replies)
    } else {
      replies.bytes.append("-")
    }
    replies.bytes.append("\n")
    return true
  }

  static func append(_ record: StreamRecord, to part: StreamPart, into replies: inout ReplyBuffer) -> Bool { true }

  static func end(
    _ part: StreamPart, through throughRevision: UInt64?, isLast: Bool, into replies: inout ReplyBuffer
  ) {
    if isLast { replies.bytes.append(".\n") }
  }
}

extension RawSpan {
  /// Returns the offset of the first byte with this value.
  fileprivate func index(of byte: UInt8, from start: Int) -> Int? {
    unsafe extracting(start..<byteCount).withUnsafeBytes { bytes in
      guard let address = bytes.baseAddress, let found = unsafe memchr(address, Int32(byte), bytes.count) else {
        return nil
      }
      return unsafe start + (UnsafeRawPointer(found) - address)
    }
  }
}
