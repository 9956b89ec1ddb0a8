import LarderServer
import Platform
import Storage

extension AccessRule {
  /// Reads `WHO=RIGHT[:STORE][@LISTENER]`: `user:web=read`, `group:larder=write:sessions@clients`.
  ///
  /// Names of users may have any sign in them but `=`, names of stores neither `:` nor `@`, so each part has one end only.
  init(_ text: String) throws(Setting.Mistake) {
    guard let equals = text.firstIndex(of: "=") else {
      throw Setting.Mistake("'\(text)' is not WHO=RIGHT, as in user:web=read or group:larder=write:sessions")
    }
    let subject = try Self.subject(String(text[..<equals]))
    let parts = text[text.index(after: equals)...].split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    let granted = parts[0].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    var store: StoreName?
    if granted.count == 2 {
      do throws(StorageError) { store = try StoreName(granted[1]) } catch { throw Setting.Mistake("\(error)") }
    }
    let listener = parts.count == 2 ? String(parts[1]) : nil
    if let listener { try Self.check(listener, subject) }
    self.init(subject, try Self.right(granted[0]), store: store, listener: listener)
  }

  private static func subject(_ text: String) throws(Setting.Mistake) -> Subject {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    switch (parts[0], parts.count == 2 ? parts[1] : nil) {
    case ("unix", nil): return .unix
    case ("tcp", nil): return .tcp
    case ("user", let name?):
      guard let id = userID(name), id != .max else {
        throw Setting.Mistake(
          "there is no user '\(name)' on this machine; \"getent passwd\" lists them, and a number will do")
      }
      return .user(id)
    case ("group", let name?):
      guard let id = groupID(name), id != .max else {
        throw Setting.Mistake(
          "there is no group '\(name)' on this machine; \"getent group\" lists them, and a number will do")
      }
      return .group(id)
    default: throw Setting.Mistake("'\(text)' is none of user:NAME, group:NAME, unix, tcp")
    }
  }

  private static func right(_ text: String) throws(Setting.Mistake) -> Right {
    let names = Right.allCases.dropFirst().map { "\($0)" }
    guard let index = names.firstIndex(of: text) else {
      throw Setting.Mistake("'\(text)' is none of \(names.joined(separator: ", "))")
    }
    return Right.allCases[index + 1]
  }

  /// What can be told without the sockets that the service manager will pass.
  private static func check(_ listener: String, _ subject: Subject) throws(Setting.Mistake) {
    guard !listener.isEmpty else {
      throw Setting.Mistake("behind @ belongs an address, or the name of a socket that systemd passes")
    }
    if listener.hasPrefix("tcp:"), subject != .tcp {
      throw Setting.Mistake(
        "\(listener) doesn't tell who connects: rules for it begin with tcp, as in tcp=read@\(listener)")
    }
    if listener.hasPrefix("unix:"), subject == .tcp {
      throw Setting.Mistake("\(listener) is a Unix socket, which no rule for tcp can be for")
    }
  }
}
