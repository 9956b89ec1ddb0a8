import ArgumentParser
import Platform

/// A store that is to exist: `NAME=ENGINE[?option=value&…]`.
struct StoreArgument {
  let name: String
  let specification: String

  init(_ text: String) throws {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw ValidationError("'\(text)' is not NAME=ENGINE, as in sessions=memory.") }
    name = String(parts[0])
    specification = String(parts[1])
  }
}

/// A path that does not depend on where the process is.
func absolutePath(_ path: String) -> String {
  if path.hasPrefix("/") { return path }
  return currentFolder() + "/" + path
}

/// Permission bits in octal.
struct FileMode {
  let bits: UInt32

  init(_ text: String) throws {
    guard let bits = UInt32(text, radix: 8), bits <= 0o777 else {
      throw ValidationError("'\(text)' is not a mode in octal, as in 660.")
    }
    self.bits = bits
  }
}

/// `USER`, `USER:GROUP` or `:GROUP`.
struct FileOwner {
  let user: UInt32?
  let group: UInt32?

  init(_ text: String) throws {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    user = userID(parts[0])
    group = parts.count == 2 ? groupID(parts[1]) : nil
    guard user != nil || parts[0].isEmpty else { throw ValidationError("There is no user '\(parts[0])'.") }
    guard parts.count == 1 || group != nil else { throw ValidationError("There is no group '\(parts[1])'.") }
    guard user != nil || group != nil else {
      throw ValidationError("'\(text)' names no owner, as in larder:larder does.")
    }
  }
}
