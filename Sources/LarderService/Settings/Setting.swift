import LarderServer
import Platform
import Storage
import Systemd

/// One key of the configuration: what it takes, what it is when nothing is said, and what it sets. `contrib/larderd.yaml` explains each.
package struct Setting: Sendable {
  package let key: String
  package let isList: Bool
  /// Whether SIGHUP changes it; otherwise a restart does.
  package let isReloaded: Bool
  /// Whether it is never shown.
  package let isSecret: Bool
  /// What it is when nothing is said, as people write it; nil for a scalar that then is not set.
  package let standard: [String]?
  let apply: @Sendable ([String], inout Settings) throws -> Void

  /// Why a value can't be taken.
  struct Mistake: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  init(
    list key: String, isReloaded: Bool = false, _ apply: @escaping @Sendable ([String], inout Settings) throws -> Void
  ) {
    (self.key, isList, self.isReloaded, isSecret, standard) = (key, true, isReloaded, false, [])
    self.apply = apply
  }

  init(
    _ key: String, standard: String?, isReloaded: Bool = false, isSecret: Bool = false,
    _ apply: @escaping @Sendable (String, inout Settings) throws -> Void
  ) {
    (self.key, isList, self.isReloaded, self.isSecret) = (key, false, isReloaded, isSecret)
    self.standard = standard.map { [$0] }
    self.apply = { try apply($0[0], &$1) }
  }

  /// A whole number.
  init(
    _ key: String, standard: Int, in range: ClosedRange<Int>, isReloaded: Bool = false,
    _ path: WritableKeyPath<Settings, Int> & Sendable
  ) {
    self.init(key, standard: "\(standard)", isReloaded: isReloaded) { text, settings in
      guard let number = Int(text), range.contains(number) else {
        throw Mistake("'\(text)' is not a whole number from \(range.lowerBound) to \(range.upperBound)")
      }
      settings[keyPath: path] = number
    }
  }

  /// A time, reloaded.
  init(time key: String, standard: String, _ path: WritableKeyPath<Settings, Duration> & Sendable) {
    self.init(key, standard: standard, isReloaded: true) { text, settings in
      guard let time = Duration(text: text) else {
        throw Mistake("'\(text)' is not a time above zero, as in 500ms, 30s, 5m or 1h")
      }
      settings[keyPath: path] = time
    }
  }

  /// The variable of the environment that sets it.
  package var variable: String { Self.variablePrefix + key.uppercased().map { $0.isLetter ? $0 : "_" } }

  static let variablePrefix = "LARDERD_"

  /// What stands ahead of the dot in keys that have one.
  static let sections = Set(all.compactMap { $0.key.firstIndex(of: ".").map($0.key.prefix(upTo:)) }).map(String.init)
}

extension Setting {
  package static let all: [Setting] = [
    Setting(list: "listen") { texts, settings in settings.server.addresses = try texts.map { try Address($0) } },
    Setting("insecure-tcp", standard: "false") { text, settings in
      guard let isAllowed = Bool(text) else { throw Mistake("'\(text)' is neither true nor false") }
      settings.server.allowsInsecureTCP = isAllowed
    },
    Setting("socket.mode", standard: nil) { text, settings in
      guard let mode = UInt32(text, radix: 8), mode <= 0o777 else {
        throw Mistake("'\(text)' is not a mode in octal, as in 660")
      }
      settings.server.access.mode = mode
    },
    Setting("socket.owner", standard: nil) { text, settings in
      let owner = try FileOwner(text)
      (settings.server.access.owner, settings.server.access.group) = (owner.user, owner.group)
    },
    Setting(list: "access", isReloaded: true) { texts, settings in
      settings.server.accessRules = try texts.map { try AccessRule($0) }
    },
    Setting("data", standard: nil) { text, settings in
      guard !text.isEmpty else { throw Mistake("the path is empty") }
      settings.server.dataPath = text.hasPrefix("/") ? text : currentFolder() + "/" + text
    },
    Setting(list: "stores", isReloaded: true) { texts, settings in
      settings.server.stores = try texts.map { try ServerConfiguration.NamedStore($0) }
    },
    Setting("metrics", standard: nil) { text, settings in settings.server.metrics = try Address(text) },
    // Each keeps a thread of Dispatch's, which lends at most 255 of this kind.
    Setting("workers", standard: 1, in: 1...128, \.server.workers),
    Setting("log.level", standard: "info", isReloaded: true) { text, settings in
      guard let level = LogLevel(rawValue: text) else {
        throw Mistake("'\(text)' is none of \(LogLevel.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      settings.logLevel = level
    },
    Setting(time: "log.slow", standard: "10ms", \.server.limits.slow),
    Setting("limits.connections", standard: 10_000, in: 1...1_000_000, isReloaded: true, \.server.limits.connections),
    Setting("limits.stores", standard: 1_024, in: 1...1_000_000, isReloaded: true, \.server.limits.stores),
    Setting("limits.frame-bytes", standard: 16 << 20, in: 1 << 17...1 << 30, \.server.limits.maxFrameBytes),
    Setting(
      "limits.output-bytes", standard: 1 << 20, in: 1 << 16...1 << 30, isReloaded: true, \.server.limits.outputBytes),
    Setting(time: "limits.hello-timeout", standard: "5s", \.server.limits.helloTimeout),
    Setting(time: "limits.frame-timeout", standard: "30s", \.server.limits.frameTimeout),
    Setting(time: "limits.write-timeout", standard: "30s", \.server.limits.writeTimeout),
    Setting(time: "limits.answer-timeout", standard: "30s", \.server.limits.answerTimeout),
    Setting(time: "limits.idle-timeout", standard: "1h", \.server.limits.idleTimeout),
    Setting(time: "limits.shutdown-timeout", standard: "5s", \.server.limits.shutdownTimeout),
  ]
}
