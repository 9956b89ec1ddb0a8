import Glibc
import Platform

/// A file that is open for reading, or standard input.
struct InputFile: ~Copyable {
  /// How often a task that waits for input checks whether it was cancelled.
  private static let cancellationCheckMilliseconds: Int32 = 100

  /// The descriptor to close with this value; nil for standard input, which stays open.
  private let owned: Descriptor?
  private let number: Int32
  private let name: String

  /// - Parameter path: The file's path, or `-` for standard input.
  init(path: String) throws {
    if path == "-" {
      guard ConsoleSession.current?.ownsInput != true else {
        throw CommandFailure(.usage, "standard input has the commands; name a file")
      }
      self.init()
      return
    }
    let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else {
      throw CommandFailure(.usage, "can't read '\(path)': \(systemMessage()); name a file, or - for standard input")
    }
    self.init(Descriptor(owning: number), number, name: "'\(path)'")
  }

  /// Opens standard input.
  init() {
    self.init(nil, STDIN_FILENO, name: "standard input")
  }

  private init(_ owned: consuming Descriptor?, _ number: Int32, name: String) {
    self.owned = owned
    self.number = number
    self.name = name
  }

  var isTerminal: Bool { isatty(number) == 1 }

  /// The total size in bytes, if it is known.
  var size: Int? {
    var status = stat()
    guard unsafe fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return status.st_size
  }

  /// A Boolean value that indicates whether a read would return without waiting.
  var isReady: Bool { isReady(within: 0) }

  private func isReady(within milliseconds: Int32) -> Bool {
    var descriptor = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&descriptor, 1, milliseconds) > 0
  }

  /// Reads bytes, waiting for them if necessary.
  /// - Returns: The number of bytes read; 0 at the end.
  /// - Throws: `CommandFailure` if reading fails; `CancellationError` if the task is cancelled or should stop, even while it waits.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    while true {
      try waitUntilReady()
      let count = unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        var descriptor = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        _ = unsafe poll(&descriptor, 1, -1)
      default: throw CommandFailure(.usage, "can't read \(name): \(systemMessage())")
      }
    }
  }

  private func waitUntilReady() throws(CancellationError) {
    repeat {
      if Task.isCancelled || StopRequest.isMade { throw CancellationError() }
    } while !isReady(within: Self.cancellationCheckMilliseconds)
  }

  /// Returns all bytes up to the end.
  /// - Parameter failure: The error to throw if there are more than `limit` bytes.
  func readAll(limit: Int, orThrow failure: @autoclosure () -> CommandFailure) throws -> [UInt8] {
    var bytes: [UInt8] = []
    if let size { bytes.reserveCapacity(min(size, limit)) }
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = try unsafe chunk.withUnsafeMutableBytes { try unsafe read(into: $0) }
      if count == 0 { return bytes }
      bytes += chunk[..<count]
      guard bytes.count <= limit else { throw failure() }
    }
  }
}

// MARK: Paths

/// Returns a path that does not depend on the current folder.
func absolutePath(_ path: String) -> String {
  var path = path.hasPrefix("/") ? path : currentFolder() + "/" + path
  while path.count > 1, path.hasSuffix("/") { path.removeLast() }
  return path
}

/// Returns the folder that contains the last component of an absolute path.
func folder(of path: String) -> String {
  let slash = path.lastIndex(of: "/")!
  return slash == path.startIndex ? "/" : String(path[..<slash])
}
