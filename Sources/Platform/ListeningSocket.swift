import CLinux
import Glibc

/// A listening socket. A Unix socket opened by this process owns its path: closing the socket removes the file, if it
/// is still the same file, unless the socket is preserved for the next process.
package struct ListeningSocket: ~Copyable, Sendable {
  package let descriptor: Descriptor
  /// The address, with the port that the system chose if port 0 was requested.
  package let address: Address
  /// The file of a Unix socket that this process opened, or an earlier process that preserved it.
  private let file: FileIdentity?
  private let removesFile: Bool

  /// The permissions to connect to a Unix socket: its file's mode and owner. Nil means the default for the process's
  /// umask and user.
  package struct FileAccess: Equatable, Sendable {
    package var mode: UInt32?
    package var owner: UInt32?
    package var group: UInt32?

    package init(mode: UInt32? = nil, owner: UInt32? = nil, group: UInt32? = nil) {
      self.mode = mode
      self.owner = owner
      self.group = group
    }
  }

  /// Binds a socket and listens. Replaces the file of a Unix socket that nobody listens on.
  /// - Parameter removesFile: Whether closing the socket removes the file of a Unix socket.
  /// - Throws: An error if another process listens on the address, or its path has a file that isn't a socket.
  package static func open(
    _ address: Address, access: FileAccess = FileAccess(), removesFile: Bool = true
  ) throws(ListenError) -> ListeningSocket {
    do {
      switch address {
      case .unix(let path): return try open(path: path, access, removesFile: removesFile)
      case .tcp(let host, let port):
        return try open(host: host, port: port) { .tcp(host: host, port: $0) }
      case .tls(let host, let port):
        return try open(host: host, port: port) { .tls(host: host, port: $0) }
      }
    } catch {
      throw ListenError(address: address, reason: "\(error)")
    }
  }

  private init(
    _ descriptor: consuming Descriptor, address: Address, file: FileIdentity? = nil, removesFile: Bool = false
  ) {
    self.descriptor = descriptor
    self.address = address
    self.file = file
    self.removesFile = removesFile
  }

  deinit { if removesFile { file?.remove() } }

  /// Whether the socket is reachable only from this machine.
  package var isLocal: Bool { (try? SocketAddress(of: descriptor.number).isLocal) ?? false }

  /// Accepts one connection from the queue. Returns nil if the queue is empty.
  package func accept() throws(SystemError) -> Descriptor? { try Socket.accept(from: descriptor) }

  private static func bind(_ socket: borrowing Descriptor, _ target: SocketAddress) throws(SystemError) {
    let number = socket.number
    try system("bind") { unsafe target.withPointer { unsafe Glibc.bind(number, $0, $1) } }
  }

  private static func listen(_ socket: borrowing Descriptor) throws(SystemError) {
    let number = socket.number
    try system("listen") { Glibc.listen(number, 4_096) }
  }

  /// - Parameter address: Returns the address with the port that was bound.
  private static func open(host: String, port: UInt16, _ address: (UInt16) -> Address) throws -> ListeningSocket {
    guard let target = try SocketAddress.resolve(host: host, port: port, forListening: true).first else {
      throw ResolveError(host: host, reason: "it has none")
    }
    let socket = try Socket.make(family: target.family)
    try Socket.set(SO_REUSEADDR, level: SOL_SOCKET, to: 1, on: socket.number)
    // Otherwise [::] would take the port of 0.0.0.0, too.
    if target.family == AF_INET6, !target.isMappedIPv4 {
      try Socket.set(IPV6_V6ONLY, level: Int32(IPPROTO_IPV6), to: 1, on: socket.number)
    }
    try bind(socket, target)
    try listen(socket)
    let bound = try SocketAddress(of: socket.number).port ?? port
    return ListeningSocket(socket, address: address(bound))
  }

  /// Sets the file's mode and owner between bind and listen, while nobody can connect yet. Locks the folder meanwhile,
  /// so that two servers that start at once don't take each other's new socket for a stale one.
  private static func open(path: String, _ access: FileAccess, removesFile: Bool) throws -> ListeningSocket {
    let folder = folder(of: path)
    let lock = Descriptor(
      owning: try system("open the socket's folder") { unsafe Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
    let lockNumber = lock.number
    try lockExclusively(lockNumber)

    let target = SocketAddress(path: path)
    let socket = try Socket.make(family: AF_UNIX)
    try removeStale(path: path, target)
    try bind(socket, target)
    let file = try FileIdentity(path: path)
    var done = false
    defer { if !done { file.remove() } }
    try access.apply(to: path)
    try listen(socket)
    done = true
    return ListeningSocket(socket, address: .unix(path: path), file: file, removesFile: removesFile)
  }

  fileprivate static func folder(of path: String) -> String {
    path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
  }

  /// Waits at most two seconds, because any process that may read the folder can lock it forever.
  private static func lockExclusively(_ number: Int32) throws {
    for _ in 0..<40 {
      if flock(number, LOCK_EX | LOCK_NB) == 0 { return }
      guard errno == EWOULDBLOCK || errno == EINTR else { throw SystemError("flock") }
      usleep(50_000)
    }
    throw Occupied(reason: "another process holds a lock on the socket's folder")
  }

  private static func removeStale(path: String, _ target: SocketAddress) throws {
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else { throw Occupied(reason: "there is a file that is not a socket") }
    let probe = try Socket.make(family: AF_UNIX)
    let number = probe.number
    let result = unsafe target.withPointer { unsafe Glibc.connect(number, $0, $1) }
    let code = errno
    guard result != 0 else { throw Occupied(reason: "another process listens there") }
    // EAGAIN is a listener whose queue is full.
    guard code == ECONNREFUSED else {
      throw code == EAGAIN ? Occupied(reason: "another process listens there") : SystemError("connect", errno: code)
    }
    try system("unlink") { unsafe unlink(path) }
  }

  private struct Occupied: Error, CustomStringConvertible {
    let reason: String
    var description: String { reason }
  }
}

extension ListeningSocket.FileAccess {
  /// Sets the permissions of a file. Follows no link: in another user's folder, the path may lead elsewhere by now.
  fileprivate func apply(to path: String) throws(SystemError) {
    if let mode { try system("chmod") { unsafe fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) } }
    guard owner != nil || group != nil else { return }
    try system("chown") { unsafe lchown(path, owner ?? uid_t.max, group ?? gid_t.max) }
  }
}

/// The reason why an address can't be listened on.
package struct ListenError: Error, Equatable, Sendable, CustomStringConvertible {
  package let address: Address
  package let reason: String
  package var description: String { "can't listen on \(address): \(reason)" }
}

/// The identity of the file that a path named at a certain time, so that another file with the same name is left alone.
private struct FileIdentity: Sendable {
  private let path: String
  private let device: dev_t
  private let inode: ino_t

  /// The device and inode, as the names of preserved sockets contain them.
  var text: String { "\(device)-\(inode)" }

  init(path: String) throws(SystemError) {
    var status = stat()
    try system("lstat") { unsafe lstat(path, &status) }
    self.path = path
    device = status.st_dev
    inode = status.st_ino
  }

  func remove() {
    guard let now = try? FileIdentity(path: path), now.device == device, now.inode == inode else { return }
    _ = unsafe unlink(path)
  }
}

// MARK: - Inherited sockets

/// The number of a descriptor that another process has passed to this one, and its name. The code that adopts the
/// descriptor owns it.
package struct InheritedSocket: Hashable, Sendable {
  package let name: String
  package let descriptor: Int32

  package init(name: String, descriptor: Int32) {
    self.name = name
    self.descriptor = descriptor
  }
}

/// The reason why a descriptor that was passed to this process can't be used.
package struct InheritedSocketError: Error, Equatable, Sendable, CustomStringConvertible {
  package let socket: InheritedSocket
  package let reason: String

  package init(_ socket: InheritedSocket, _ reason: String) { (self.socket, self.reason) = (socket, reason) }

  package var description: String {
    "can't use the passed descriptor \(socket.descriptor) (\"\(socket.name)\"): \(reason)"
  }
}

extension ListeningSocket {
  /// Adopts a socket that listens already. Closing it leaves its file, which belongs to the process that created it.
  /// - Throws: An error if it isn't a listening stream socket of a supported family. The descriptor stays open then.
  package static func adopt(_ inherited: InheritedSocket) throws(InheritedSocketError) -> ListeningSocket {
    let address = try prepare(inherited)
    return ListeningSocket(Descriptor(owning: inherited.descriptor), address: address)
  }

  /// Checks a descriptor that was passed, and sets its flags.
  /// - Returns: The address that it listens on.
  private static func prepare(_ inherited: InheritedSocket) throws(InheritedSocketError) -> Address {
    let number = inherited.descriptor
    do {
      guard try Socket.option(SO_TYPE, of: number) == Int32(SOCK_STREAM.rawValue) else {
        throw Unfit(reason: "it is not a stream socket")
      }
      guard try Socket.option(SO_ACCEPTCONN, of: number) != 0 else {
        throw Unfit(reason: "it doesn't listen")
      }
      guard let address = try SocketAddress(of: number).address else {
        throw Unfit(reason: "it is neither a Unix socket nor a TCP one")
      }
      try system("fcntl") { fcntl(number, F_SETFD, FD_CLOEXEC) }
      let flags = try system("fcntl") { fcntl(number, F_GETFL) }
      try system("fcntl") { fcntl(number, F_SETFL, flags | O_NONBLOCK) }
      return address
    } catch {
      throw InheritedSocketError(inherited, "\(error)")
    }
  }

  private struct Unfit: Error, CustomStringConvertible {
    let reason: String
    var description: String { reason }
  }
}

// MARK: - Preserved sockets

// Preserved sockets outlive the process that opened them, because the service manager stores a second descriptor and
// passes it to the next process. Clients wait in their queues meanwhile.
extension ListeningSocket {
  /// The prefix of the names of preserved sockets.
  package static let preservedNamePrefix = "larder-listen-"

  /// The name under which the socket is preserved. The name of a Unix socket contains its file's inode, so that another
  /// file at the same path isn't taken for it.
  package var preservedName: String {
    let place =
      file.map(\.text) ?? "\((try? SocketAddress(of: descriptor.number).address) ?? address)"
    return Self.preservedNamePrefix + place.replacing(":", with: "_")
  }

  /// Returns whether a preserved socket is the one that listens on this address.
  package static func isPreserved(_ socket: InheritedSocket, at address: Address) -> Bool {
    guard let bound = try? SocketAddress(of: socket.descriptor).address else { return false }
    switch address {
    case .unix(let path):
      guard bound == address, let file = try? FileIdentity(path: path) else { return false }
      return socket.name == preservedNamePrefix + file.text
    case .tcp(let host, let port), .tls(let host, let port):
      let target = try? SocketAddress.resolve(host: host, port: port, forListening: true).first
      return target?.address == bound
    }
  }

  /// Closes a preserved socket that isn't needed anymore, and removes its file.
  package static func discard(_ socket: InheritedSocket) {
    let address = try? SocketAddress(of: socket.descriptor).address
    if case .unix(let path)? = address, isPreserved(socket, at: .unix(path: path)) { _ = unsafe unlink(path) }
    _ = Descriptor(owning: socket.descriptor)
  }

  /// Adopts a preserved socket that listens on this address. It stays preserved, and closing it leaves its file.
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
  /// Gives a socket's file the permissions that it would get if it were created now, so that none remain from an
  /// earlier configuration.
  fileprivate func renew(_ path: String) throws(SystemError) {
    var (file, folder) = (stat(), stat())
    try system("lstat") { unsafe lstat(path, &file) }
    try system("stat") { unsafe stat(ListeningSocket.folder(of: path), &folder) }
    // Files that other threads create meanwhile get fewer permissions than they should, never more.
    let mask = umask(0o077)
    umask(mask)
    let mode = mode ?? (0o777 & ~mask)
    // Only root can change the owner.
    let owner = owner ?? (geteuid() == 0 ? 0 : file.st_uid)
    let group = group ?? (folder.st_mode & S_ISGID != 0 ? folder.st_gid : getegid())
    try Self(
      mode: mode == file.st_mode & 0o777 ? nil : mode, owner: owner == file.st_uid ? nil : owner,
      group: group == file.st_gid ? nil : group
    ).apply(to: path)
  }
}
