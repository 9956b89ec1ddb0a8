import Foundation

/// The file system that a folder is on: `/proc/self/mountinfo`, proc(5).
struct Mount: CustomStringConvertible {
  /// As `ext4`.
  let kind: String
  /// What is mounted, as `/dev/vda`.
  let source: String

  /// Nil when the system doesn't tell.
  init?(holding folder: String) {
    let folder = URL(fileURLWithPath: folder).resolvingSymlinksInPath().path
    guard let text = try? String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8) else { return nil }
    var longest = 0
    var found: (kind: String, source: String)?
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count > 5, let dash = fields.firstIndex(of: "-"), dash + 2 < fields.count else { continue }
      // Of two that are mounted at one place, the later one hides the other.
      let place = fields[4].replacingOccurrences(of: "\\040", with: " ")
      let isAbove = place == "/" || folder == place || folder.hasPrefix(place + "/")
      guard isAbove, place.utf8.count >= longest else { continue }
      longest = place.utf8.count
      found = (String(fields[dash + 1]), String(fields[dash + 2]))
    }
    guard let found else { return nil }
    (kind, source) = found
  }

  /// Whether what is written there never reaches a disk.
  var isMemory: Bool { ["tmpfs", "ramfs"].contains(kind) }

  var description: String { kind == source ? kind : "\(kind) (\(source))" }
}
