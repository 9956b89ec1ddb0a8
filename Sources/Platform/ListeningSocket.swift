import CLinux
import Glibc

/// A socket that listens. A Unix one that was made here owns its path: the file is removed when the socket closes, if it is still the one
/// that was made, unless somebody keeps the socket.
package struct ListeningSocket: ~Copyable, Sendable {
  package let descriptor: Descriptor
  /// The address with the port that was really bound, when port 0 was asked for.
  package let address: Address
  /// Of a Unix socket that was made here, or by an earlier process that had it kept.
  let file: FileIdentity?
  private let removesFile: Bool

  /// Who may connect to a Unix socket: its file's mode and owner. Nil leaves what the process's umask and user give.
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

  /// Binds and listens. A Unix socket file that nobody listens on is replaced; one with a listener, or a file that is no socket, is
  /// an error.
  /// - Parameter removesFile: whether a Unix socket's file goes when this closes.
  package static func open(
    _ address: Address, access: FileAccess = FileAccess(), removesFile: Bool = true
  ) throws(ListenError) -> ListeningSocket {
    do {
      switch address {
      case .unix(let path): return try open(path: path, access, removesFile: removesFile)
      case .tcp(let host, let port): return try open(host: host, port: port)
      }
    } catch {
      throw ListenError(address: address, reason: "\(error)")
    }
  }

  init(_ descriptor: consuming Descriptor, address: Address, file: FileIdentity? = nil, removesFile: Bool = false) {
    self.descriptor = descriptor
    self.address = address
    self.file = file
    self.removesFile = removesFile
  }

  deinit { if removesFile { file?.remove() } }

  /// Whether only this machine reaches it.
  package var isLocal: Bool { (try? SocketAddress(of: descriptor.number).isLocal) ?? false }

  /// Takes one connection off the queue, or nil when there is none.
  package func accept() throws(SystemError) -> Descriptor? { try Socket.accept(from: descriptor) }

  private static func bind(_ socket: borrowing Descriptor, _ target: SocketAddress) throws(SystemError) {
    let number = socket.number
    try system("bind") { unsafe target.withPointer { unsafe Glibc.bind(number, $0, $1) } }
  }

  private static func listen(_ socket: borrowing Descriptor) throws(SystemError) {
    let number = socket.number
    try system("listen") { Glibc.listen(number, 4_096) }
  }

  private static func open(host: String, port: UInt16) throws -> ListeningSocket {
    guard let target = try SocketAddress.resolve(host: host, port: port, forListening: true).first else {
      throw ResolveError(host: host, reason: "it has none")
    }
    let socket = try Socket.make(family: target.family)
    try Socket.set(SO_REUSEADDR, level: SOL_SOCKET, to: 1, on: socket.number)
    try bind(socket, target)
    try listen(socket)
    let bound = try SocketAddress(of: socket.number).port ?? port
    return ListeningSocket(socket, address: .tcp(host: host, port: bound))
  }

  /// The file's mode and owner are set between bind and listen, while nobody can connect yet. The folder is locked meanwhile, so that
  /// two servers that start at once don't take each other's fresh socket for a stale one.
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

  static func folder(of path: String) -> String {
    path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
  }

  /// Waits at most two seconds: whoever may read the folder can hold a lock on it for ever.
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
  /// Follows no link, for in a folder of somebody else's the path may lead elsewhere by now.
  func apply(to path: String) throws(SystemError) {
    if let mode { try system("chmod") { unsafe fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) } }
    guard owner != nil || group != nil else { return }
    try system("chown") { unsafe lchown(path, owner ?? uid_t.max, group ?? gid_t.max) }
  }
}

/// Which file a path named at a certain time, so that another's file of the same name is left alone.
struct FileIdentity: Sendable {
  let path: String
  let device: dev_t
  let inode: ino_t

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

/// An address that can't be listened on, and why.
package struct ListenError: Error, Equatable, Sendable, CustomStringConvertible {
  package let address: Address
  package let reason: String
  package var description: String { "can't listen on \(address): \(reason)" }
}
