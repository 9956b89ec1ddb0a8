import Platform

/// Finds a server on this machine, for commands without an address.
enum ServerSearch {
  /// The socket of the packaged service.
  private static let serviceSocket = Address.unix(path: "/run/larder/larder.sock")
  /// The socket of a server that root has started.
  private static let rootSocket = Address.unix(path: "/run/larder.sock")

  static let help = "$XDG_RUNTIME_DIR/larder.sock, /run/larder/larder.sock and /run/larder.sock"

  /// The addresses to try: the user's own server first.
  static var candidates: [Address] {
    let shared = [serviceSocket, rootSocket]
    return shared.contains(.default) ? shared : [.default] + shared
  }

  /// Returns the first address that accepts a connection.
  /// - Throws: `CommandFailure` that names every address, and the reason why it is not the one.
  static func find(among candidates: [Address] = candidates) throws(CommandFailure) -> Address {
    var failures: [String] = []
    for address in candidates {
      do throws(ConnectError) {
        _ = try Socket.connect(to: address)
        return address
      } catch {
        failures.append("\(address) (\(error.reason))")
      }
    }
    throw CommandFailure(
      .unreachable,
      "no server accepts a connection at \(failures.joined(separator: ", ")); is larderd running? "
        + "Set its address with --server or LARDER_SERVER")
  }
}
