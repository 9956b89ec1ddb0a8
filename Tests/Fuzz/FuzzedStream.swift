import Platform
import Storage
import Wire

/// What the targets share that run the server's processing on a stream of requests. For fuzzing, this file is compiled as
/// part of the module LarderServer.
enum FuzzedStream {
  /// Where jobs and messages go.
  static let mailbox: Mailbox = {
    do { return try Mailbox() } catch { fatalError("no mailbox: \(error)") }
  }()

  /// A policy without rules, which names the socket in refusals.
  static let policy: AccessPolicy = {
    do { return try AccessPolicy([], listeners: [Listener(address: .unix(path: "/s"))]) } catch {
      fatalError("no policy: \(error)")
    }
  }()

  /// Checks that a stream gets the same replies when it is split in two, and runs it for a client that may only read. The
  /// first byte selects where the stream is split.
  /// - Parameters:
  ///   - isRepeatable: Whether a stream gets the same replies every time.
  ///   - replies: Returns the replies to a client with a right when the stream is split at an offset.
  static func check(
    _ start: UnsafePointer<UInt8>, _ count: Int, isRepeatable: (RawSpan) -> Bool = { _ in true },
    _ replies: (Right, RawSpan, Int) -> [UInt8]
  ) {
    guard count > 0 else { return }
    let bytes = unsafe RawSpan(_unsafeStart: start, byteCount: count)
    let stream = bytes.extracting(1..<count)
    let split = Int(bytes.integer(at: 0, as: UInt8.self)!) * stream.byteCount / 255
    if replies(.admin, stream, stream.byteCount) != replies(.admin, stream, split), isRepeatable(stream) {
      fatalError("the stream gets other replies when it is split at \(split)")
    }
    _ = replies(.read, stream, split)
  }
}
