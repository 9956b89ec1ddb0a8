import CSystemd
import Glibc

/// An entry of the journal, sent by the journal's own protocol: sd_journal_sendv(3).
struct JournalEntry {
  private var bytes: [UInt8] = []
  private var ends: [Int] = []

  init(_ fields: [(name: String, value: String)]) {
    for field in fields {
      bytes += "\(field.name)=\(field.value)".utf8
      ends.append(bytes.count)
    }
  }

  func send() {
    unsafe bytes.withUnsafeBytes { bytes in
      var (vectors, start): ([iovec], Int) = (unsafe [], 0)
      for end in ends {
        let field = unsafe bytes[start..<end]
        unsafe vectors.append(
          iovec(
            iov_base: UnsafeMutableRawPointer(mutating: UnsafeRawBufferPointer(rebasing: field).baseAddress),
            iov_len: field.count))
        start = end
      }
      _ = unsafe sd_journal_sendv(vectors, Int32(vectors.count))
    }
  }

  /// Whether this process's standard error goes to the journal: `JOURNAL_STREAM` of systemd.exec(5).
  static var isStandardErrorTheJournal: Bool {
    guard let value = unsafe getenv("JOURNAL_STREAM").map({ unsafe String(cString: $0) }) else { return false }
    let parts = value.split(separator: ":")
    var status = stat()
    guard parts.count == 2, unsafe fstat(STDERR_FILENO, &status) == 0 else { return false }
    return UInt64(parts[0]) == UInt64(status.st_dev) && UInt64(parts[1]) == UInt64(status.st_ino)
  }

  /// Whether the journal's socket is within reach. The library says nothing when it is not.
  static var canBeSent: Bool { unsafe access("/run/systemd/journal/socket", W_OK) == 0 }
}
