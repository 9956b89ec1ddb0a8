import Glibc
import Platform

/// The lines that were typed in consoles, the last ones of them, a line each. The file is its owner's alone. Each line is added when it
/// is typed, so that consoles side by side don't take each other's away. Without a place for it, or with one that fails, nothing is kept.
struct HistoryFile {
  static let limit = 1_000
  /// A longer line is a value that was pasted, and nothing to look for again.
  static let maxLineLength = 4_096

  private let path: String?
  private var last: String?

  /// In `$XDG_STATE_HOME/larder`, which is `~/.local/state/larder` if that isn't an absolute path.
  init() {
    let state = Self.variable("XDG_STATE_HOME").flatMap { $0.hasPrefix("/") ? $0 : nil }
    self.init(path: (state ?? Self.variable("HOME").map { $0 + "/.local/state" }).map { $0 + "/larder/history" })
  }

  init(path: String?) {
    self.path = path
  }

  /// The lines so far, the oldest first. A file that has grown to several times the limit is cut.
  mutating func load() -> [String] {
    guard let path, let bytes = try? Self.read(path) else { return [] }
    let lines = bytes.split(separator: UInt8(ascii: "\n")).compactMap { String(validating: $0, as: UTF8.self) }
    let kept = Array(lines.filter(Self.isFit).suffix(Self.limit))
    if lines.count > 2 * Self.limit { try? Self.replace(path, with: kept) }
    last = kept.last
    return kept
  }

  /// Keeps a line, unless it is the one before once more, or begins with a space: then it is nobody's business.
  /// - Returns: what there is to go back to: the line without the space that Tab has left at its end.
  mutating func add(_ line: String) -> String? {
    var line = line
    while line.hasSuffix(" "), !line.hasSuffix("\\ ") { line.removeLast() }
    guard Self.isFit(line), line != last else { return nil }
    last = line
    if let path { Self.append(line, to: path) }
    return line
  }

  private static func isFit(_ line: String) -> Bool {
    !line.isEmpty && line.utf8.count <= maxLineLength && line.first != " " && line.first != "\t"
      && EscapedText.line(line) == line
  }

  private static func variable(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }

  // MARK: Files

  private static func read(_ path: String) throws -> [UInt8] {
    let file = try LocalFileSystem().open(path, .reading)
    // Only the end counts of a file that somebody has made very long.
    let size = try file.byteCount()
    let start = max(0, size - 2 * limit * maxLineLength)
    var bytes = [UInt8](repeating: 0, count: size - start)
    let count = try unsafe bytes.withUnsafeMutableBytes { try unsafe file.read(at: start, into: $0) }
    return Array(bytes[..<count])
  }

  private static func append(_ line: String, to path: String) {
    try? makeFolder(folder(of: path))
    let number = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    guard number >= 0 else { return }
    let file = Descriptor(owning: number)
    // It may have been made by another program, for everyone; and what is no file, such as /dev/null, stays as it is.
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
    let file = try files.open(temporary, .making)
    try unsafe bytes.withUnsafeBytes { try unsafe file.write($0, at: 0) }
    try files.rename(temporary, to: path)
  }

  /// With the folders above it.
  private static func makeFolder(_ path: String) throws(SystemError) {
    let files = LocalFileSystem()
    guard try files.kind(of: path + "/.") == nil else { return }
    try makeFolder(folder(of: path))
    try files.makeFolder(path)
  }
}
