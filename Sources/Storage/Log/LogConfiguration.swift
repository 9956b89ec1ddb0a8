import Platform

/// The sizes of a log's files, and the limits on its work. Tests use smaller ones.
package struct LogConfiguration: Sendable {
  /// The maximum size of any file of a log, in bytes.
  static let maxFileByteCount = 1 << 40

  /// The size of a store's first segment, in bytes. Later segments grow with the log.
  package var minSegmentSize = 1 << 20
  package var maxSegmentSize = 64 << 20
  /// The size of the smallest segment, which is used on a disk that is nearly full.
  var smallestSegmentSize: Int { max(1_024, minSegmentSize / 8) }
  /// The space that only deletes may use, so that they are accepted on a full disk.
  var removalReserve: Int { minSegmentSize / 32 }
  /// The size of the log from which on it keeps a reserve, so that small stores stay small.
  package var reserveThreshold = 4 << 20
  /// The maximum write rate of a compaction, unless the log grows in spite of it.
  package var compactionBytesPerSecond = 64 << 20
  /// Returns the salt of a new segment: an unpredictable number whose lowest bit is 1.
  var makeSalt: @Sendable () -> UInt64 = { .random(in: .min ... .max) | 1 }

  package init() {}

  /// Returns the size of the next segment of a log with that many bytes: an eighth, as a power of two within the
  /// limits.
  func segmentSize(logByteCount: Int) -> Int {
    var size = minSegmentSize
    while size < maxSegmentSize, size * 8 < logByteCount { size *= 2 }
    return size
  }
}

/// What opening a log has found.
package struct LogRecovery: Sendable, Equatable {
  package var segments = 0
  package var bytes = 0
  package var records = 0
  /// The number of bytes of unfinished writes that a crash had left and opening has truncated.
  package var truncatedBytes = 0
  /// The file that was truncated.
  package var truncatedPath: String?
}

/// Why a log can't be opened.
package enum LogError: Error, Equatable, Sendable {
  /// A file is not what was written: which file, from which byte on, and what is wrong.
  case damaged(path: String, offset: Int, reason: String)
  /// A later version of this program has written the file.
  case laterVersion(path: String)
  /// A call failed.
  case failed(path: String, SystemError)
  /// The entries don't fit into memory.
  case noMemory(StorageError)

  /// Runs calls on a file, and adds its path to the error if one fails.
  static func wrapping<Result>(
    _ path: String, _ body: () throws(SystemError) -> Result
  ) throws(LogError) -> Result {
    do throws(SystemError) { return try body() } catch { throw .failed(path: path, error) }
  }
}

/// What is wrong with a file whose version no program of this version has written.
let laterVersionProblem =
  "was written by a later version of larder, or its version is damaged; nothing was changed, so use that version"

extension LogError: FileEngineError {
  var isLaterVersion: Bool { if case .laterVersion = self { true } else { false } }

  var path: String? {
    switch self {
    case .damaged(let path, _, _), .laterVersion(let path), .failed(let path, _): path
    case .noMemory: nil
    }
  }
}

extension LogError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .damaged(let path, let offset, let reason):
      "\(path) is damaged at byte \(offset): \(reason); run \"larder check\" to see what is intact"
    case .laterVersion(let path): "\(path) \(laterVersionProblem)"
    case .failed(let path, let error): "\(path): \(error)"
    case .noMemory(let error): "\(error)"
    }
  }
}
