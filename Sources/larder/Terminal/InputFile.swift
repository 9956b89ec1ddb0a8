import Glibc
import Platform

/// A file that is read, or standard input.
struct InputFile: ~Copyable {
  /// How often a task that waits for input looks whether it was cancelled.
  private static let glanceMilliseconds: Int32 = 100

  /// Closed with the value; standard input stays open.
  private let owned: Descriptor?
  private let number: Int32
  private let name: String

  /// - Parameter path: `-` for standard input.
  init(path: String) throws {
    if path == "-" {
      self.init()
      return
    }
    let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else {
      throw CommandFailure(.usage, "can't read '\(path)': \(systemMessage()); name a file, or - for standard input")
    }
    self.init(Descriptor(owning: number), number, name: "'\(path)'")
  }

  /// Standard input.
  init() {
    self.init(nil, STDIN_FILENO, name: "standard input")
  }

  private init(_ owned: consuming Descriptor?, _ number: Int32, name: String) {
    self.owned = owned
    self.number = number
    self.name = name
  }

  var isTerminal: Bool { isatty(number) == 1 }

  /// Bytes in all, when that is known beforehand.
  var size: Int? {
    var status = stat()
    guard unsafe fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return status.st_size
  }

  /// Whether reading would not wait.
  var isReady: Bool { isReady(within: 0) }

  private func isReady(within milliseconds: Int32) -> Bool {
    var wanted = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&wanted, 1, milliseconds) > 0
  }

  /// - Returns: how many bytes came; 0 at the end.
  /// - Throws: `CommandFailure`; `CancellationError` in a task that is cancelled, also while nothing comes.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    while true {
      try waitUntilReady()
      let count = unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        var wanted = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        _ = unsafe poll(&wanted, 1, -1)
      default: throw CommandFailure(.usage, "can't read \(name): \(systemMessage())")
      }
    }
  }

  private func waitUntilReady() throws(CancellationError) {
    repeat {
      if Task.isCancelled { throw CancellationError() }
    } while !isReady(within: Self.glanceMilliseconds)
  }

  /// Everything up to the end.
  /// - Throws: when there is more than `limit`.
  func readAll(limit: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = try unsafe chunk.withUnsafeMutableBytes { try unsafe read(into: $0) }
      if count == 0 { return bytes }
      bytes += chunk[..<count]
      guard bytes.count <= limit else {
        throw CommandFailure(
          .refused,
          "\(name) is longer than \(limit) bytes, which no server takes as a value; split it over several keys")
      }
    }
  }
}
