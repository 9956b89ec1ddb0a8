import Glibc
import Storage

/// An engine whose disk is a remote thing that comes and goes.
///
/// Safe because only the commit thread uses `socket`, and everything else is constant.
final class RemoteEngine: Engine, @unchecked Sendable {
  private let disk: RemoteDisk
  /// How long a call waits for the disk.
  private let patience: Double
  /// The connection to the disk; nil if there is none.
  private var socket: Int32?

  init(_ disk: RemoteDisk, patience: Double) { (self.disk, self.patience) = (disk, patience) }

  deinit { disconnect() }

  let waitsOutside = true
  let reservedByteCount = 1 << 20
  var figures: [(name: String, value: UInt64)] { [] }

  func reserveSpace() throws(EngineError) {}

  func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [ValueLocation] {
    let socket = try connect()
    var request: [UInt8] = []
    for number in [UInt64(records.count), last] { unsafe withUnsafeBytes(of: number) { unsafe request += $0 } }
    unsafe request += records
    guard unsafe send(socket, request, request.count, Int32(MSG_NOSIGNAL)) == request.count,
      let reply = receive(1, from: socket)
    else {
      // Its reply may still come, and must not be taken for one to the next request.
      disconnect()
      throw .transient("the remote disk doesn't reply")
    }
    guard reply == [1] else { throw .transient("the remote disk refuses the records") }
    return []
  }

  func sync() throws(EngineError) { _ = try connect() }
  func performMaintenance(_ context: any MaintenanceContext) throws(EngineError) -> Bool { false }
  func stopBackgroundWork() {}
  func close() throws(EngineError) { disconnect() }

  private func connect() throws(EngineError) -> Int32 {
    if let socket { return socket }
    guard let socket = disk.connect() else { throw .transient("the remote disk can't be reached") }
    var timeout = timeval(tv_sec: Int(patience), tv_usec: Int(patience * 1e6) % 1_000_000)
    let size = socklen_t(MemoryLayout<timeval>.size)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] { _ = unsafe setsockopt(socket, SOL_SOCKET, option, &timeout, size) }
    self.socket = socket
    return socket
  }

  private func disconnect() {
    if let socket { _ = Glibc.close(socket) }
    socket = nil
  }
}

extension EngineKind {
  /// An engine that keeps the records of its store on a remote disk.
  static func remote(_ disk: RemoteDisk, patience: Double) -> EngineKind {
    EngineKind(
      "remote", summary: "on a remote disk", options: [.durability], isRecorded: false,
      opener: { _, _, _ in (RemoteEngine(disk, patience: patience), []) }, remover: { _, _ in })
  }
}
