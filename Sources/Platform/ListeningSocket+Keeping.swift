import Glibc

/// Sockets that outlive the process that opened them, because somebody keeps a second descriptor and passes it to the next process. Clients
/// wait in their queues meanwhile.
extension ListeningSocket {
  /// What the names of kept sockets begin with.
  package static let keptPrefix = "larder-listen-"

  /// What it goes by where it is kept. For a Unix socket that has the number of its file, so that another file at the same path is not
  /// taken for it.
  package var keptName: String {
    let place =
      file.map { "\($0.device)-\($0.inode)" } ?? "\((try? SocketAddress(of: descriptor.number).address) ?? address)"
    return Self.keptPrefix + place.replacing(":", with: "_")
  }

  /// Whether a kept socket is the one that listens on this address.
  package static func isKept(_ socket: InheritedSocket, at address: Address) -> Bool {
    guard let bound = try? SocketAddress(of: socket.descriptor).address else { return false }
    switch address {
    case .unix(let path):
      guard bound == address, let file = try? FileIdentity(path: path) else { return false }
      return socket.name == "\(keptPrefix)\(file.device)-\(file.inode)"
    case .tcp(let host, let port):
      let target = try? SocketAddress.resolve(host: host, port: port, forListening: true).first
      return target?.address == bound
    }
  }

  /// Closes a kept socket that nobody wants any more, and removes its file.
  package static func giveUp(_ socket: InheritedSocket) {
    let address = try? SocketAddress(of: socket.descriptor).address
    if case .unix(let path)? = address, isKept(socket, at: .unix(path: path)) { _ = unsafe unlink(path) }
    _ = Descriptor(owning: socket.descriptor)
  }

  /// Takes up a kept socket of which `isKept` holds. It goes on being kept, and its file stays when this closes.
  package static func resume(
    _ socket: InheritedSocket, at address: Address, access: FileAccess = FileAccess()
  ) throws(ListenError) -> ListeningSocket {
    do {
      _ = try prepare(socket)
      var file: FileIdentity?
      if case .unix(let path) = address {
        file = try FileIdentity(path: path)
        try access.renew(path)
      }
      return ListeningSocket(Descriptor(owning: socket.descriptor), address: address, file: file)
    } catch {
      throw ListenError(address: address, reason: "\(error)")
    }
  }
}

extension ListeningSocket.FileAccess {
  /// Gives a socket's file what it would get if it were made now, so that nothing stays of what was once asked for.
  fileprivate func renew(_ path: String) throws(SystemError) {
    var (file, folder) = (stat(), stat())
    try system("lstat") { unsafe lstat(path, &file) }
    try system("stat") { unsafe stat(ListeningSocket.folder(of: path), &folder) }
    // Files that other threads make meanwhile get less than they should, never more.
    let mask = umask(0o077)
    umask(mask)
    let mode = mode ?? (0o777 & ~mask)
    // Only root could give it away.
    let owner = owner ?? (geteuid() == 0 ? 0 : file.st_uid)
    let group = group ?? (folder.st_mode & S_ISGID != 0 ? folder.st_gid : getegid())
    try Self(
      mode: mode == file.st_mode & 0o777 ? nil : mode, owner: owner == file.st_uid ? nil : owner,
      group: group == file.st_gid ? nil : group
    ).apply(to: path)
  }
}
