import LarderServer
import Platform
import Storage

/// Settings that are valid by themselves, but that the server refuses because of others, or because of what is in the
/// data directory.
struct Contradiction {
  /// The keys that contradict each other. The first one is where the error is reported.
  let keys: [String]
  /// The position of the list's item that is wrong; nil for the value as a whole.
  let item: Int?
  let message: String

  init(_ keys: [String], item: Int? = nil, _ message: String) {
    (self.keys, self.item, self.message) = (keys, item, message)
  }
}

extension Settings {
  /// Everything that the server refuses although each value is valid. Reads the descriptions of the stores in the data
  /// directory.
  var contradictions: [Contradiction] {
    limitContradictions + addressContradictions + roleContradictions + tlsContradictions + storeContradictions
      + databaseContradictions
  }

  private var limitContradictions: [Contradiction] {
    let (limits, count) = (server.limits, server.stores.count)
    let maxStores = limits.maxFrameBytes / 192
    var found: [Contradiction] = []
    if limits.stores > maxStores {
      found.append(
        Contradiction(
          ["limits.stores", "limits.frame-bytes"],
          "with this limits.frame-bytes it can be at most \(maxStores), because the list of stores is one frame"))
    }
    if limits.findTime > limits.maxFindTime {
      found.append(
        Contradiction(
          ["limits.find-time", "limits.max-find-time"], "it can't be longer than limits.max-find-time"))
    }
    if count > limits.stores {
      found.append(
        Contradiction(["stores", "limits.stores"], "there are \(count), but limits.stores is \(limits.stores)"))
    }
    for (index, database) in server.databases.enumerated()
    where server.databases[..<index].contains(where: { $0.number == database.number }) {
      found.append(Contradiction(["resp.databases"], item: index, "database \(database.number) occurs twice"))
    }
    for (index, store) in server.stores.enumerated() {
      guard let limit = store.specification.limit, let whole = limits.memoryLimit, limit.bytes >= whole.bytes else {
        continue
      }
      found.append(
        Contradiction(
          ["stores", "memory-limit"], item: index,
          "the limit of \"\(store.name)\" must be lower than memory-limit, \(whole)"))
    }
    return found
  }

  private var addressContradictions: [Contradiction] {
    var found: [Contradiction] = []
    for (index, address) in server.addresses.enumerated() {
      if !address.isPortChosenBySystem, server.addresses[..<index].contains(address) {
        found.append(Contradiction(["listen"], item: index, "\"\(address)\" occurs twice"))
      } else if isExposed(address) {
        found.append(
          Contradiction(["listen", "insecure-tcp"], item: index, "\(ExposureError(address: address))"))
      }
    }
    guard let metrics = server.metrics else { return found }
    if metrics.isEncrypted {
      found.append(
        Contradiction(["metrics"], "metrics are served without TLS; use a loopback address, as in tcp:127.0.0.1:9411"))
    }
    if !metrics.isPortChosenBySystem, server.addresses.contains(metrics) {
      found.append(Contradiction(["metrics", "listen"], "\"\(metrics)\" is in listen, too; use another address"))
    } else if isExposed(metrics) {
      found.append(
        Contradiction(["metrics", "insecure-tcp"], "\(ExposureError(address: metrics, isForMetrics: true))"))
    }
    return found
  }

  private var roleContradictions: [Contradiction] {
    let names = server.accessRoles.map(\.name)
    var found: [Contradiction] = []
    for (index, name) in names.enumerated() where names[..<index].contains(name) {
      found.append(Contradiction(["roles"], item: index, "'\(name)' occurs twice"))
    }
    for (index, rule) in server.accessRules.enumerated() {
      guard case .role(let name) = rule.subject, !names.contains(name) else { continue }
      found.append(Contradiction(["access", "roles"], item: index, "there is no role '\(name)' in roles"))
    }
    return found
  }

  private var tlsContradictions: [Contradiction] {
    var found: [Contradiction] = []
    if let index = server.addresses.firstIndex(where: \.isEncrypted), tls.certificates.isEmpty {
      found.append(
        Contradiction(
          ["listen", "tls.certificates"], item: index, "\(SecurityError(address: server.addresses[index]))"))
    }
    if tls.certificates.count != tls.keys.count {
      found.append(
        Contradiction(
          ["tls.certificates", "tls.keys"],
          "there are \(tls.certificates.count) certificates and \(tls.keys.count) keys; each certificate needs its key, in "
            + "the same order"))
    }
    if tls.clientAuthorities == nil, tls.clientCertificates == .required {
      found.append(
        Contradiction(
          ["tls.client-certificates", "tls.client-authorities"],
          "set tls.client-authorities to the certificates of the authorities that issue clients' certificates"))
    }
    if tls.clientAuthorities == nil, tls.revocations != nil {
      found.append(
        Contradiction(
          ["tls.revocations", "tls.client-authorities"], "no client shows a certificate without tls.client-authorities")
      )
    }
    return found
  }

  private var databaseContradictions: [Contradiction] {
    let names = replication.databases.map(\.name)
    var found: [Contradiction] = []
    for (index, name) in names.enumerated() where names[..<index].contains(name) {
      found.append(Contradiction(["databases"], item: index, "the name \(name) occurs twice"))
    }
    for (index, store) in server.stores.enumerated() where store.specification.engine == .replicated {
      let name: DatabaseName? = store.specification.complete.value(of: EngineOption.database.name)
      guard let name, !names.contains(name) else { continue }
      found.append(
        Contradiction(
          ["stores", "databases"], item: index,
          "\"\(store.name)\" is in the database \(name), which databases doesn't name"))
    }
    return found
  }

  private func isExposed(_ address: Address) -> Bool {
    !server.allowsInsecureTCP && !address.isEncrypted && address.isNumericAndRemote
  }

  private var storeContradictions: [Contradiction] {
    let stores = server.stores
    var found: [Contradiction] = []
    if let path = server.dataPath, let kind = try? LocalFileSystem().kind(of: path) {
      if kind != .folder {
        found.append(Contradiction(["data"], "\"\(path)\" is not a folder, and links are not followed"))
      } else if let name = DataFolder(path: path).foreignName {
        found.append(
          Contradiction(
            ["data"],
            "\"\(path)\" is not a data directory of larderd, but has \"\(name)\" in it; use a folder of its own"))
      }
    }
    let recorded = server.dataPath.map { DataDirectory.recordedStores(at: $0, engines: server.engines) } ?? []
    for (index, store) in stores.enumerated() {
      let name = "\"\(store.name)\""
      if stores[..<index].contains(where: { $0.name == store.name }) {
        found.append(Contradiction(["stores"], item: index, "\(name) occurs twice"))
      } else if store.specification.engine.isRecorded, server.dataPath == nil {
        found.append(
          Contradiction(
            ["stores", "data"], item: index,
            "\(name) has a durable engine, which requires a data directory: set data"))
      } else if let existing = recorded.first(where: { $0.name == store.name }),
        !store.specification.fits(existing.specification)
      {
        found.append(
          Contradiction(
            ["stores", "data"], item: index,
            "\(name) exists with \(existing.specification); write that, or drop it"))
      }
    }
    return found
  }
}

extension Address {
  /// Whether the system chooses a free port, so that several sockets can have the same address.
  fileprivate var isPortChosenBySystem: Bool {
    switch self {
    case .tcp(_, let port), .tls(_, let port): port == 0
    case .unix: false
    }
  }
}
