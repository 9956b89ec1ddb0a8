import Glibc

/// A failed call to the operating system and its `errno`.
package struct SystemError: Error, Equatable, Hashable, Sendable, CustomStringConvertible {
  package let call: String
  package let errno: Int32

  package static let outOfMemory = SystemError("malloc", errno: ENOMEM)

  package init(_ call: String, errno: Int32 = Glibc.errno) {
    self.call = call
    self.errno = errno
  }

  package var description: String { "\(call): \(reason)" }

  /// What the error means, without the call: `No space left on device`.
  package var reason: String { unsafe String(cString: strerror(errno)) }

  /// Whether the file, or the folder it should be in, doesn't exist.
  package var isNotFound: Bool { errno == ENOENT }
  /// Whether the system has no memory.
  package var isOutOfMemory: Bool { errno == ENOMEM || errno == ENOBUFS }
  package var isExisting: Bool { errno == EEXIST }
  /// Whether the process may not write there.
  package var isReadOnly: Bool { errno == EACCES || errno == EPERM || errno == EROFS }
  /// Whether something that should be a file is a folder, a link or a device.
  package var isNoFile: Bool { errno == EINVAL || errno == EISDIR || errno == ELOOP || errno == ENXIO }
}

/// The result of a call that moves bytes. A non-blocking call that would have to wait isn't an error.
package enum Transfer: Equatable, Sendable {
  case moved(Int)
  case wouldBlock
  case failed(SystemError)
}

extension Transfer {
  /// Runs `body`, and again for as long as a signal interrupts it.
  @inline(__always)
  static func of(_ call: StaticString, _ body: () -> Int) -> Transfer {
    while true {
      let result = body()
      if result >= 0 { return .moved(result) }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .wouldBlock
      case let code: return .failed(SystemError(call.description, errno: code))
      }
    }
  }
}

/// Runs `body`, and again for as long as a signal interrupts it. Returns its result, or throws the error in `errno`.
@discardableResult
func system(_ call: StaticString, _ body: () -> Int32) throws(SystemError) -> Int32 {
  while true {
    let result = body()
    if result >= 0 { return result }
    if errno != EINTR { throw SystemError(call.description) }
  }
}
