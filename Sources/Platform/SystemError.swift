import Glibc

/// A failed call to the operating system: which call, and its `errno`.
package struct SystemError: Error, Equatable, Hashable, Sendable, CustomStringConvertible {
  package let call: String
  package let errno: Int32

  package init(_ call: String, errno: Int32 = Glibc.errno) {
    self.call = call
    self.errno = errno
  }

  package var description: String {
    unsafe "\(call): \(String(cString: strerror(errno)))"
  }
}

/// What a call that moves bytes or takes from a queue came to. Non-blocking calls have three ends, and "not now" is no error.
package enum Transfer: Equatable, Sendable {
  case moved(Int)
  case wouldBlock
  case failed(SystemError)
}

extension Transfer {
  /// Runs `body` again as long as a signal interrupts it.
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

/// The result of `body`, again as long as a signal interrupts it, or the error it leaves in `errno`.
@discardableResult
func system(_ call: StaticString, _ body: () -> Int32) throws(SystemError) -> Int32 {
  while true {
    let result = body()
    if result >= 0 { return result }
    if errno != EINTR { throw SystemError(call.description) }
  }
}
