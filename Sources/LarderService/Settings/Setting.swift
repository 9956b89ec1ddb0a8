import Basics
import LarderServer
import Platform
import Replication
import Storage
import Systemd

/// The definition of one configuration key: its form, its default, and what it sets. `contrib/larderd.yaml` documents
/// every key.
package struct Setting: Sendable {
  package let key: String
  package let isList: Bool
  /// A Boolean value that indicates whether SIGHUP applies a change; if not, a restart does.
  let isReloadable: Bool
  /// A Boolean value that indicates whether the value is never shown.
  let isSecret: Bool
  /// The default as a person writes it; nil for a single value that is not set by default.
  package let defaultTexts: [String]?
  /// Sets the value, and returns what is wrong with it or with each of its items, by their positions.
  private let applyTexts: @Sendable ([String], inout Settings) -> [(index: Int, error: any Error)]

  /// Why a value is not valid.
  struct ValueError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  /// Defines a list, which is empty by default.
  private init<Item>(
    list key: String, isReloadable: Bool = false, _ path: WritableKeyPath<Settings, [Item]> & Sendable,
    _ item: @escaping @Sendable (String) throws -> Item
  ) {
    (self.key, isList, self.isReloadable, isSecret, defaultTexts) = (key, true, isReloadable, false, [])
    applyTexts = { texts, settings in
      var errors: [(Int, any Error)] = []
      for (index, text) in texts.enumerated() {
        do { settings[keyPath: path].append(try item(text)) } catch { errors.append((index, error)) }
      }
      return errors
    }
  }

  /// Defines a single value.
  private init(
    _ key: String, default defaultText: String?, isReloadable: Bool = false, isSecret: Bool = false,
    _ apply: @escaping @Sendable (String, inout Settings) throws -> Void
  ) {
    (self.key, isList, self.isReloadable, self.isSecret) = (key, false, isReloadable, isSecret)
    defaultTexts = defaultText.map { [$0] }
    applyTexts = { texts, settings in
      do { try apply(texts[0], &settings) } catch { return [(0, error)] }
      return []
    }
  }

  /// Defines a whole number.
  private init(
    _ key: String, default defaultNumber: Int, in range: ClosedRange<Int>, isReloadable: Bool = false,
    _ path: WritableKeyPath<Settings, Int> & Sendable
  ) {
    self.init(key, default: "\(defaultNumber)", isReloadable: isReloadable) { text, settings in
      settings[keyPath: path] = try Self.wholeNumber(text, in: range)
    }
  }

  private static func wholeNumber(_ text: String, in range: ClosedRange<Int>) throws(ValueError) -> Int {
    guard let number = Int(text), range.contains(number) else {
      throw ValueError("'\(text)' is not a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// Defines a size in bytes.
  private init(
    size key: String, default defaultSize: Int, in range: ClosedRange<Int>, isReloadable: Bool = false,
    _ path: WritableKeyPath<Settings, Int> & Sendable
  ) {
    self.init(key, default: "\(ByteSize(bytes: defaultSize))", isReloadable: isReloadable) { text, settings in
      settings[keyPath: path] = try Self.size(text, in: range)
    }
  }

  private static func size(_ text: String, in range: ClosedRange<Int>) throws(ValueError) -> Int {
    guard let size = ByteSize(text), range.contains(size.bytes) else {
      let (least, most) = (ByteSize(bytes: range.lowerBound), ByteSize(bytes: range.upperBound))
      throw ValueError("'\(text)' is not a size from \(least) to \(most), as in \(least)")
    }
    return size.bytes
  }

  /// Returns a size that can be a percentage of the memory that the process can have.
  private static func memorySize(_ text: String, in range: ClosedRange<Int>) throws(ValueError) -> Int {
    guard text.hasSuffix("%") else { return try size(text, in: range) }
    guard let percent = Int(digits: text.dropLast()), (1...100).contains(percent) else {
      throw ValueError("'\(text)' is not a percentage from 1% to 100%")
    }
    return min(max(range.lowerBound, availableMemory() / 100 * percent), range.upperBound)
  }

  /// Defines a duration, which is reloadable.
  private init(
    duration key: String, default defaultText: String, _ path: WritableKeyPath<Settings, Duration> & Sendable
  ) {
    self.init(key, default: defaultText, isReloadable: true) { text, settings in
      guard let duration = Duration(text: text) else {
        throw ValueError("'\(text)' is not a duration above zero, as in 500ms, 30s, 5m or 1h")
      }
      settings[keyPath: path] = duration
    }
  }

  /// Sets the value. Leaves out the items of a list that are not valid.
  /// - Returns: What is wrong with the value, or with each of a list's items, by their positions in `texts`.
  func apply(_ texts: [String], to settings: inout Settings) -> [(index: Int, error: any Error)] {
    applyTexts(texts, &settings)
  }

  /// Returns the absolute path of a file.
  private static func filePath(_ text: String) throws(ValueError) -> String {
    guard !text.isEmpty else { throw ValueError("the path is empty") }
    guard !text.hasPrefix("~") else {
      throw ValueError("'\(text)' begins with ~, which only a shell replaces; write the whole path, from / on")
    }
    return text.hasPrefix("/") ? text : currentFolder() + "/" + text
  }

  /// The environment variable that sets this key.
  var variable: String { Self.variablePrefix + key.uppercased().map { $0.isLetter ? $0 : "_" } }

  static let variablePrefix = "LARDERD_"

  /// The first parts of the keys that have a dot.
  static let sections = Set(all.compactMap { $0.key.firstIndex(of: ".").map($0.key.prefix(upTo:)) }).map(String.init)

  /// All settings, in the order in which they are shown.
  package static let all: [Setting] = [
    Setting(list: "listen", \.server.listeners) { try ListenerAddress($0) },
    Setting("insecure-tcp", default: "false") { text, settings in
      guard let isAllowed = Bool(text) else { throw ValueError("'\(text)' is neither true nor false") }
      settings.server.allowsInsecureTCP = isAllowed
    },
    Setting(list: "tls.certificates", isReloadable: true, \.tls.certificates) { try filePath($0) },
    Setting(list: "tls.keys", isReloadable: true, \.tls.keys) { try filePath($0) },
    Setting("tls.client-authorities", default: nil, isReloadable: true) { text, settings in
      settings.tls.clientAuthorities = try filePath(text)
    },
    Setting("tls.client-certificates", default: "optional", isReloadable: true) { text, settings in
      guard let certificates = TLSSettings.ClientCertificates(rawValue: text) else {
        throw ValueError("'\(text)' is neither optional nor required")
      }
      settings.tls.clientCertificates = certificates
    },
    Setting("tls.revocations", default: nil, isReloadable: true) { text, settings in
      settings.tls.revocations = try filePath(text)
    },
    Setting("tokens", default: nil, isReloadable: true) { text, settings in settings.tokens = try filePath(text) },
    Setting("socket.mode", default: nil) { text, settings in
      guard let mode = UInt32(text, radix: 8), mode <= 0o777 else {
        throw ValueError("'\(text)' is not an octal mode, as in 660")
      }
      settings.server.access.mode = mode
    },
    Setting("socket.owner", default: nil) { text, settings in
      try FileOwner(text).apply(to: &settings.server.access)
    },
    Setting(list: "roles", isReloadable: true, \.server.accessRoles) { try AccessRole($0) },
    Setting(list: "access", isReloadable: true, \.server.accessRules) { try AccessRule($0) },
    Setting("data", default: nil) { text, settings in settings.server.dataPath = try filePath(text) },
    Setting("strict", default: "false") { text, settings in
      guard let isStrict = Bool(text) else { throw ValueError("'\(text)' is neither true nor false") }
      settings.server.isStrict = isStrict
    },
    Setting(list: "stores", isReloadable: true, \.server.stores) { try ServerConfiguration.NamedStore($0) },
    Setting(list: "databases", \.replication.databases) { try ReplicationSettings.NamedDatabase($0) },
    Setting("cluster.node", default: nil) { text, settings in
      guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
        throw ValueError("'\(text)' is not a name of 1 to 64 ASCII characters without spaces")
      }
      settings.replication.node = text
    },
    Setting("cluster.address", default: nil) { text, settings in
      settings.replication.address = try Address(text).description
    },
    Setting(list: "cluster.stores", \.replication.stores) { try StorePattern($0) },
    Setting("cluster.lease", default: "3s") { text, settings in
      guard let lease = Duration(text: text), (.milliseconds(500)...Duration.seconds(60)).contains(lease) else {
        throw ValueError("'\(text)' is not a duration from 500ms to 1m, as in 3s")
      }
      settings.replication.lease = lease
    },
    Setting(size: "cluster.value-cache", default: 64 << 20, in: 1 << 20...1 << 40, \.replication.valueCache),
    Setting("cluster.require-standby", default: "false") { text, settings in
      guard let requires = Bool(text) else { throw ValueError("'\(text)' is neither true nor false") }
      settings.replication.requiresStandby = requires
    },
    Setting(list: "resp.databases", \.server.databases) { try RESPDatabase($0) },
    Setting("resp.keyspace-events", default: nil) { text, settings in
      guard let classes = RESPEventClasses(text) else {
        throw ValueError("'\(text)' is not made of Redis's letters for classes of events, as in KEA or Ex")
      }
      settings.server.keyspaceEvents = classes
    },
    Setting(list: "http.hosts", \.server.httpHosts) { text in
      guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !text.contains("/") else {
        throw ValueError("'\(text)' is not the name of a host, as in larder.example or larder.example:8443")
      }
      return text
    },
    Setting("metrics", default: nil) { text, settings in settings.server.metrics = try Address(text) },
    // Each worker occupies a Dispatch thread, of which there are at most 255.
    Setting("workers", default: 1, in: 1...128, \.server.workers),
    Setting("find-threads", default: 2, in: 1...64, \.server.findThreads),
    Setting("memory-limit", default: nil, isReloadable: true) { text, settings in
      settings.server.limits.memoryLimit = MemoryLimit("\(try memorySize(text, in: 64 << 20...1 << 40))")
    },
    Setting("log.level", default: "info", isReloadable: true) { text, settings in
      guard let level = LogLevel(rawValue: text) else {
        throw ValueError("'\(text)' is not one of \(LogLevel.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      settings.logLevel = level
    },
    Setting("audit", default: nil) { text, settings in
      settings.audit = text == "log" ? .log : .file(try filePath(text), maxSize: AuditDestination.defaultMaxSize)
    },
    // After `audit`, because it is about its file.
    Setting("audit-size", default: "\(ByteSize(bytes: AuditDestination.defaultMaxSize))") { text, settings in
      let size = try size(text, in: 1 << 16...1 << 40)
      if case .file(let path, _) = settings.audit { settings.audit = .file(path, maxSize: size) }
    },
    Setting(duration: "log.slow", default: "10ms", \.server.limits.slowThreshold),
    Setting("limits.connections", default: 10_000, in: 1...1_000_000, isReloadable: true, \.server.limits.connections),
    Setting("limits.client-connections", default: nil, isReloadable: true) { text, settings in
      settings.server.limits.clientConnections = try wholeNumber(text, in: 1...1_000_000)
    },
    Setting("limits.handshakes", default: 1_024, in: 1...1_000_000, isReloadable: true, \.server.limits.handshakes),
    Setting("limits.stores", default: 1_024, in: 1...1_000_000, isReloadable: true, \.server.limits.stores),
    Setting(size: "limits.frame-bytes", default: 16 << 20, in: 1 << 17...1 << 30, \.server.limits.maxFrameBytes),
    Setting(
      size: "limits.output-bytes", default: 1 << 20, in: 1 << 16...1 << 30, isReloadable: true,
      \.server.limits.maxOutputBytes
    ),
    Setting(
      size: "limits.snapshot-memory", default: 256 << 20, in: 1 << 20...1 << 40, isReloadable: true,
      \.server.limits.maxSnapshotBytes),
    Setting("limits.finds", default: 64, in: 1...65_536, isReloadable: true, \.server.limits.finds),
    Setting(
      "limits.find-documents", default: 10_000_000, in: 1...1_000_000_000_000, isReloadable: true,
      \.server.limits.findDocuments),
    Setting(
      size: "limits.find-memory", default: 64 << 20, in: 1 << 16...1 << 40, isReloadable: true,
      \.server.limits.findMemory),
    Setting(
      size: "limits.result-memory", default: 256 << 20, in: 1 << 20...1 << 40, isReloadable: true,
      \.server.limits.maxResultBytes),
    Setting(duration: "limits.find-time", default: "2s", \.server.limits.findTime),
    Setting(duration: "limits.max-find-time", default: "1m", \.server.limits.maxFindTime),
    Setting(duration: "limits.hello-timeout", default: "5s", \.server.limits.helloTimeout),
    Setting(duration: "limits.frame-timeout", default: "30s", \.server.limits.frameTimeout),
    Setting(duration: "limits.frame-time", default: "5m", \.server.limits.frameTime),
    Setting(duration: "limits.upload-time", default: "30m", \.server.limits.uploadTime),
    Setting(duration: "limits.write-timeout", default: "30s", \.server.limits.writeTimeout),
    Setting(duration: "limits.answer-timeout", default: "30s", \.server.limits.streamTimeout),
    Setting(duration: "limits.idle-timeout", default: "1h", \.server.limits.idleTimeout),
    Setting(duration: "limits.shutdown-timeout", default: "5s", \.server.limits.shutdownTimeout),
  ]
}
