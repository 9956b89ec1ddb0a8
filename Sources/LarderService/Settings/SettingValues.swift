import Basics
import LarderServer
import Platform
import Storage
import Wire

// Parsers for the values of settings. Each throws a `Setting.ValueError` that says what a valid value looks like.

extension AccessRule {
  /// Parses `WHO=RIGHT[:STORE[/PREFIX*]][@LISTENER]`, such as `user:web=read` or `group:larder=write:carts/eu:*@clients`.
  ///
  /// The syntax is unambiguous: a user's name can contain any character but `=`, a store's name neither `:`, `/` nor
  /// `@`, and `@`, `*` and `%` in a prefix are written `%40`, `%2A` and `%25`.
  init(_ text: String) throws(Setting.ValueError) {
    guard let equals = text.firstIndex(of: "=") else {
      throw Setting.ValueError("'\(text)' is not WHO=RIGHT, as in user:web=read or group:larder=write:sessions")
    }
    let subject = try Self.subject(String(text[..<equals]))
    let parts = text[text.index(after: equals)...].split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    let grant = parts[0].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let right = try Self.right(grant[0])
    var store: StoreName?
    var keyPrefix = ""
    if grant.count == 2 {
      let object = grant[1].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      do throws(StorageError) { store = try StoreName(object[0]) } catch { throw Setting.ValueError("\(error)") }
      if object.count == 2 { keyPrefix = try Self.keyPrefix(object[1], right) }
    }
    let listener = parts.count == 2 ? String(parts[1]) : nil
    if let listener { try Self.validate(listener, for: subject) }
    self.init(subject, right, store: store, keyPrefix: keyPrefix, listener: listener)
  }

  private static func keyPrefix(_ text: String, _ right: Right) throws(Setting.ValueError) -> String {
    guard text.hasSuffix("*"), text.count > 1 else {
      throw Setting.ValueError("what keys begin with, and *, must follow /, as in user:web=read:carts/eu:*")
    }
    guard let prefix = percentDecoded(text.dropLast()), !text.dropLast().contains("*") else {
      throw Setting.ValueError(
        "'\(text.dropLast())' is not the beginning of keys: write % as %25, @ as %40, and * as %2A")
    }
    guard prefix.utf8.count <= Key.maxSize else {
      throw Setting.ValueError("the key prefix has \(prefix.utf8.count) bytes; the limit is \(Key.maxSize)")
    }
    guard right < .admin else {
      throw Setting.ValueError("admin is a right to a whole store; use write:STORE/PREFIX* for some of its keys")
    }
    return prefix
  }

  /// Returns a text with `%40` and the like replaced; nil if it isn't UTF-8, or a `%` isn't followed by two digits.
  private static func percentDecoded(_ text: Substring) -> String? {
    let parts = text.split(separator: "%", omittingEmptySubsequences: false)
    var bytes = Array(parts[0].utf8)
    for part in parts.dropFirst() {
      guard part.utf8.count >= 2, part.prefix(2).allSatisfy(\.isHexDigit), let byte = UInt8(part.prefix(2), radix: 16)
      else { return nil }
      bytes.append(byte)
      bytes += part.dropFirst(2).utf8
    }
    return String(validating: bytes, as: UTF8.self)
  }

  fileprivate static func subject(_ text: String) throws(Setting.ValueError) -> Subject {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    switch (parts[0], parts.count == 2 ? parts[1] : nil) {
    case ("unix", nil): return .unix
    case ("tcp", nil): return .tcp
    case ("tls", nil): return .tls
    case ("role", let name?):
      guard !name.isEmpty else {
        throw Setting.ValueError("the name of a role must follow role:, as in role:operators=admin")
      }
      return .role(name)
    case ("principal", let name?):
      guard !name.isEmpty else {
        throw Setting.ValueError(
          "the name of a certificate or a token must follow principal:, as in principal:web=read")
      }
      return .principal(name)
    case ("user", let name?):
      guard let id = userID(name), id != .max else {
        throw Setting.ValueError(
          "there is no user '\(name)' on this machine; \"getent passwd\" lists them, or use a number")
      }
      return .user(id)
    case ("group", let name?):
      guard let id = groupID(name), id != .max else {
        throw Setting.ValueError(
          "there is no group '\(name)' on this machine; \"getent group\" lists them, or use a number")
      }
      return .group(id)
    default:
      throw Setting.ValueError(
        "'\(text)' is not one of user:NAME, group:NAME, unix, tcp, principal:NAME, role:NAME, tls")
    }
  }

  private static func right(_ text: String) throws(Setting.ValueError) -> Right {
    let names = Right.allCases.dropFirst().map { "\($0)" }
    guard let index = names.firstIndex(of: text) else {
      throw Setting.ValueError("'\(text)' is not one of \(names.joined(separator: ", "))")
    }
    return Right.allCases[index + 1]
  }

  /// Checks what can be checked before the service manager passes its sockets.
  private static func validate(_ listener: String, for subject: Subject) throws(Setting.ValueError) {
    guard !listener.isEmpty else {
      throw Setting.ValueError("an address, or the name of a socket that systemd passes, must follow @")
    }
    guard let address = try? ListenerAddress(listener).address, !subject.canConnect(to: address) else { return }
    switch address {
    case .tcp:
      throw Setting.ValueError(
        "rules for \(listener) begin with principal or tcp, as in tcp=read@\(listener)")
    case .tls:
      throw Setting.ValueError(
        "rules for \(listener) begin with principal or tls, as in principal:web.example=read@\(listener)")
    case .unix:
      throw Setting.ValueError(
        "\(listener) is a Unix socket, so its rules begin with user, group, principal or unix, as in unix=read@\(listener)"
      )
    }
  }
}

extension AccessRole {
  /// Parses `NAME=WHO+WHO…`, such as `operators=user:ann+principal:ops.example`.
  init(_ text: String) throws(Setting.ValueError) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, !parts[0].isEmpty else {
      throw Setting.ValueError("'\(text)' is not NAME=WHO+WHO…, as in operators=user:ann+principal:ops.example")
    }
    let members = try parts[1].split(separator: "+", omittingEmptySubsequences: false).map {
      text throws(Setting.ValueError) in
      let member = try AccessRule.subject(String(text))
      if case .role = member { throw Setting.ValueError("a role can't be a member of a role") }
      return member
    }
    self.init(parts[0], members)
  }
}

extension ServerConfiguration.NamedStore {
  /// Parses `NAME=ENGINE[?option=value&…]`.
  init(_ text: String) throws {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw Setting.ValueError("'\(text)' is not NAME=ENGINE, as in sessions=memory") }
    try self.init(name: String(parts[0]), String(parts[1]), engines: .known)
  }
}

extension RESPDatabase {
  /// Parses `NUMBER=STORE`.
  init(_ text: String) throws {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let number = Int(digits: parts[0]),
      let database = RESPDatabase(number, try StoreName(String(parts[1])))
    else {
      throw Setting.ValueError(
        "'\(text)' is not NUMBER=STORE with a number from 0 to \(Self.maxNumber), as in 0=sessions")
    }
    self = database
  }
}

/// The owner of a file, written as `USER`, `USER:GROUP` or `:GROUP`.
struct FileOwner {
  private let user: UInt32?
  private let group: UInt32?

  init(_ text: String) throws(Setting.ValueError) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    user = parts.first.flatMap(userID)
    group = parts.count == 2 ? groupID(parts[1]) : nil
    guard user != nil || parts[0].isEmpty else { throw Setting.ValueError("there is no user '\(parts[0])'") }
    guard parts.count == 1 || group != nil else { throw Setting.ValueError("there is no group '\(parts[1])'") }
    guard user != nil || group != nil else {
      throw Setting.ValueError("'\(text)' is not an owner; write it as larder:larder")
    }
  }

  func apply(to access: inout ListeningSocket.FileAccess) {
    (access.owner, access.group) = (user, group)
  }
}

extension Duration {
  /// Parses a positive whole number of ms, s, m or h, up to 10 years. Returns nil for anything else.
  init?(text: String) {
    let units: [(suffix: String, milliseconds: Int64)] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)]
    guard let unit = units.first(where: { text.hasSuffix($0.suffix) }),
      let number = Int64(digits: text.dropLast(unit.suffix.count)), number > 0,
      number <= 315_360_000_000 / unit.milliseconds
    else { return nil }
    self = .milliseconds(number * unit.milliseconds)
  }
}
