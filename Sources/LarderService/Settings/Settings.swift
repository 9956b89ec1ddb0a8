import LarderServer
import Systemd

/// What larderd is to do, as its settings say. Where they come from is `SettingsSource`'s, which keys there are is `Setting`'s.
package struct Settings: Sendable {
  package var server = ServerConfiguration(addresses: [])
  package var logLevel = LogLevel.info

  /// What is wrong with the settings as a whole, where each by itself is right.
  func contradictions() -> [String] {
    let (limits, stores) = (server.limits, server.stores)
    var found: [String] = []
    let maxStores = limits.maxFrameBytes / 192
    if limits.stores > maxStores {
      found.append(
        "limits.stores: it takes up to \(maxStores) with these limits.frame-bytes, for the list of stores is one frame"
      )
    }
    if stores.count > limits.stores {
      found.append("stores: there are \(stores.count), and limits.stores is \(limits.stores)")
    }
    for (index, store) in stores.enumerated() where stores[..<index].contains(where: { $0.name == store.name }) {
      found.append("stores: \"\(store.name)\" is there twice")
    }
    if server.dataPath == nil, let store = stores.first(where: { $0.specification.engine.isDurable }) {
      found.append("stores: \"\(store.name)\" survives a restart, and needs a folder to be kept in: set data")
    }
    return found
  }
}
