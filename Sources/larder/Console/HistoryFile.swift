import Glibc
import Platform

/// The latest lines typed in consoles, one per line of a file that only its owner can read.
///
/// Each line is appended when it is typed, so that consoles running at the same time keep each other's lines. If there
/// is no place for the file, or writing fails, nothing is kept.
struct HistoryFile {
  static let maxLineCount = 1_000
  /// A longer line is probably a pasted value, which nobody searches for.
  static let maxLineLength = 4_096

  private let path: String?
  private var lastLine: String?

  /// Creates a history in `$XDG_STATE_HOME/larder`, or in `~/.local/state/larder` if that variable is not an absolute
  /// path.
  init() {
    let state = environment("XDG_STATE_HOME").flatMap { $0.hasPrefix("/") ? $0 : nil }
    let parent = state ?? environment("HOME").map { $0 + "/.local/state" }
    self.init(path: parent.map { $0 + "/larder/history" })
  }

  init(path: String?) {
    self.path = path
  }

  /// Returns the lines so far, oldest first. Shortens a file that has grown to more than twice the limit.
  mutating func load() -> [String] {
    guard let path, let bytes = try? Self.read(path) else { return [] }
    let lines = bytes.split(separator: UInt8(ascii: "\n")).compactMap { String(validating: $0, as: UTF8.self) }
    let kept = Array(lines.filter(Self.isRecordable).suffix(Self.maxLineCount))
    if lines.count > 2 * Self.maxLineCount { try? Self.replace(path, with: kept) }
    lastLine = kept.last
    return kept
  }

  /// Adds a line, unless it repeats the previous one or begins with a space, which keeps it private.
  /// - Returns: The line that was added, without trailing spaces, which Tab leaves; nil if none was.
  mutating func add(_ line: String) -> String? {
    var line = line
    while line.hasSuffix(" "), !line.hasSuffix("\\ ") { line.removeLast() }
    guard Self.isRecordable(line), line != lastLine else { return nil }
    lastLine = line
    if let path { Self.append(line, to: path) }
    return line
  }

  private static func isRecordable(_ line: String) -> Bool {
    !line.isEmpty && line.utf8.count <= maxLineLength && line.first != " " && line.first != "\t"
      && EscapedText.line(line) == line
  }

  // MARK: Files

  private static func read(_ path: String) throws -> [UInt8] {
    let file = try LocalFileSystem().open(path, .reading)
    // Reads only the end of a file that something else has made very long.
    let size = try file.byteCount()
    let start = max(0, size - 2 * maxLineCount * maxLineLength)
    var bytes = [UInt8](repeating: 0, count: size - start)
    let count = try unsafe bytes.withUnsafeMutableBytes { try unsafe file.read(at: start, into: $0) }
    return Array(bytes[..<count])
  }

  private static func append(_ line: String, to path: String) {
    try? createFolder(folder(of: path))
    let number = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    guard number >= 0 else { return }
    let file = Descriptor(owning: number)
    // Another program may have created the file with wider permissions. Anything but a regular file, such as /dev/null,
    // stays unchanged.
    var status = stat()
    guard unsafe fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG, fchmod(number, 0o600) == 0 else {
      return
    }
    var text = line + "\n"
    text.withUTF8 { _ = unsafe write(file.number, $0.baseAddress, $0.count) }
  }

  private static func replace(_ path: String, with lines: [String]) throws {
    let temporary = path + ".tmp"
    let files = LocalFileSystem()
    try? files.remove(temporary)
    let bytes = Array(lines.map { $0 + "\n" }.joined().utf8)
    let file = try files.open(temporary, .creating)
    try unsafe bytes.withUnsafeBytes { try unsafe file.write($0, at: 0) }
    try files.rename(temporary, to: path)
  }

  /// Creates a folder and its parents.
  private static func createFolder(_ path: String) throws(SystemError) {
    let files = LocalFileSystem()
    guard try files.kind(of: path + "/.") == nil else { return }
    try createFolder(folder(of: path))
    try files.createFolder(path)
  }
}
