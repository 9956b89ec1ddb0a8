import Basics
import Glibc
import Platform
import YAML

/// A server and how to connect to it, under a name in `profiles.yaml`, so that nobody has to type it again.
struct Profile: Equatable {
  var server: ServerList?
  /// The paths of files; nil for what the profile doesn't have.
  var authorities: String?
  var certificate: String?
  var key: String?
  var tokenFile: String?
  var timeout: Duration?

  /// The profile that is used when nothing says which server is meant.
  static let defaultName = "default"

  /// The file of profiles: `profiles.yaml` in the user's folder of configurations.
  static var defaultPath: String {
    let folder = environment("XDG_CONFIG_HOME") ?? (environment("HOME") ?? "") + "/.config"
    return folder + "/larder/profiles.yaml"
  }

  /// Returns the profile with a name, or nil if there is none.
  /// - Throws: `CommandFailure` if the file is not safe, or not valid.
  static func named(_ name: String, in path: String = defaultPath) throws(CommandFailure) -> Profile? {
    guard unsafe access(path, F_OK) == 0 else { return nil }
    try checkOwner(of: path)
    let root: YAMLNode?
    do {
      root = try YAMLParser.document(in: try readFile(path, maxByteCount: 1 << 20, trusting: .writableByOwner))
    } catch let error as FileReadError {
      throw CommandFailure(.usage, "\(path): \(error.reason)")
    } catch let error as YAMLError {
      throw CommandFailure(.usage, "\(path), line \(error.line): \(error.reason)")
    } catch { throw CommandFailure(.usage, "\(path): \(error)") }
    guard let root, !root.isNull else { return nil }
    guard case .mapping(let profiles, _) = root else {
      throw CommandFailure(.usage, "\(path): the file does not contain profiles in the form NAME: {server: ADDRESS}")
    }
    for (key, value) in profiles {
      guard case .scalar(name, _, _) = key else { continue }
      guard case .mapping(let members, _) = value else {
        throw CommandFailure(.usage, "\(path), line \(value.line): the profile \(name) has no members, such as server")
      }
      var profile = Profile()
      for (key, value) in members { try profile.add(key, value, path) }
      return profile
    }
    return nil
  }

  /// Checks that nobody but the user decides where the user's tokens go.
  private static func checkOwner(of path: String) throws(CommandFailure) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return }
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw CommandFailure(.usage, "\(path): the file belongs to another user, who could send your tokens anywhere")
    }
  }

  private mutating func add(_ key: YAMLNode, _ value: YAMLNode, _ path: String) throws(CommandFailure) {
    let place = "\(path), line \(key.line)"
    guard case .scalar(let name, _, _) = key, case .scalar(let text, _, _) = value, !value.isNull else {
      throw CommandFailure(.usage, "\(place): a member of a profile is NAME: TEXT")
    }
    let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    switch name {
    case "server":
      do { server = try ServerList(text) } catch { throw CommandFailure(.usage, "\(place): \(error)") }
    case "tls-ca": authorities = Self.file(text, in: folder)
    case "tls-cert": certificate = Self.file(text, in: folder)
    case "tls-key": self.key = Self.file(text, in: folder)
    case "token-file": tokenFile = Self.file(text, in: folder)
    case "timeout":
      do { timeout = try DurationArgument(text).duration } catch { throw CommandFailure(.usage, "\(place): \(error)") }
    default:
      let names = ["server", "tls-ca", "tls-cert", "tls-key", "token-file", "timeout"]
      let suggestion = SpellingSuggestion.nearest(to: name, of: names).map { "; did you mean \($0)?" } ?? ""
      throw CommandFailure(.usage, "\(place): a profile has no \(name)\(suggestion)")
    }
  }

  /// Returns the path of a file, which may begin with `~/` or be relative to the folder of the profiles.
  private static func file(_ path: String, in folder: String) -> String {
    if path.hasPrefix("~/") { return (environment("HOME") ?? "") + path.dropFirst() }
    return path.hasPrefix("/") ? path : folder + "/" + path
  }
}
