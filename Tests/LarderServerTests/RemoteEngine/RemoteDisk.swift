import Foundation
import Synchronization

/// A disk that is reached over sockets and can be away for a while. A thread serves each connection.
///
/// A request is the length of the records as a `UInt64`, the revision of the last one as another, and the records. The
/// reply is one byte: 1 if the records are kept.
final class RemoteDisk: Sendable {
  /// What the disk does with requests.
  enum Mode: CaseIterable {
    case working
    /// It replies that it can't keep the records.
    case refusing
    /// It reads requests, and does nothing until the mode changes. Then it is too late.
    case stalled
    /// It closes all connections.
    case absent
    /// It keeps records, and closes the connection instead of replying.
    case losingReplies
  }

  private struct State {
    var mode = Mode.working
    var lastRevision: UInt64 = 0
    var records: [UInt8] = []
    var requestCount = 0
  }

  private let state = Mutex(State())

  func setMode(_ mode: Mode) { state.withLock { $0.mode = mode } }

  /// The number of requests that have arrived.
  var requestCount: Int { state.withLock { $0.requestCount } }

  /// Everything that the disk keeps.
  var records: Data { state.withLock { Data($0.records) } }

  /// Returns the offsets of a text in what the disk keeps.
  func offsets(of text: String) -> [Int] {
    let (records, text) = (records, Data(text.utf8))
    var offsets: [Int] = []
    while let range = records.range(of: text, in: (offsets.last.map { $0 + 1 } ?? 0)..<records.count) {
      offsets.append(range.lowerBound)
    }
    return offsets
  }

  /// Connects to the disk.
  /// - Returns: The descriptor of a socket, which the caller owns; nil if the disk is absent.
  func connect() -> Int32? {
    guard state.withLock({ $0.mode }) != .absent else { return nil }
    var ends: [Int32] = [-1, -1]
    guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { return nil }
    let end = ends[1]
    Thread.detachNewThread {
      self.serve(end)
      close(end)
    }
    return ends[0]
  }

  private func serve(_ socket: Int32) {
    while let header = receive(16, from: socket) {
      let (count, last) = unsafe header.withUnsafeBytes {
        unsafe ($0.load(as: UInt64.self), $0.load(fromByteOffset: 8, as: UInt64.self))
      }
      guard let records = receive(Int(count), from: socket) else { return }
      state.withLock { $0.requestCount += 1 }
      guard let isKept = reply(to: records, last: last) else { return }
      var byte: UInt8 = isKept ? 1 : 0
      guard unsafe send(socket, &byte, 1, Int32(MSG_NOSIGNAL)) == 1 else { return }
    }
  }

  /// Handles a request.
  /// - Returns: Whether the records are kept; nil to close the connection.
  private func reply(to records: [UInt8], last: UInt64) -> Bool? {
    let mode = state.withLock { state in
      if state.mode == .working || state.mode == .losingReplies, last > state.lastRevision {
        state.lastRevision = last
        state.records += records
      }
      return state.mode
    }
    switch mode {
    case .working: return true
    case .refusing: return false
    case .absent, .losingReplies: return nil
    case .stalled:
      while state.withLock({ $0.mode == .stalled }) { usleep(2_000) }
      return nil
    }
  }
}

/// Receives `count` bytes.
/// - Returns: The bytes; nil if the connection ends before that, or its timeout passes.
func receive(_ count: Int, from socket: Int32) -> [UInt8]? {
  var bytes = [UInt8](repeating: 0, count: count)
  var received = 0
  while received < count {
    let step = unsafe bytes.withUnsafeMutableBytes { buffer in
      unsafe recv(socket, buffer.baseAddress! + received, count - received, 0)
    }
    guard step > 0 else { return nil }
    received += step
  }
  return bytes
}
