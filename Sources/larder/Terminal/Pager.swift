import Glibc

/// The program in `PAGER`, which shows long tables page by page.
enum Pager {
  /// Shows a text in the pager, and waits until the person has left it.
  /// - Returns: Whether there is a pager, which was started.
  static func show(_ text: String) -> Bool {
    guard let command = unsafe getenv("PAGER").map({ unsafe String(cString: $0) }), !command.isEmpty, command != "cat",
      let pipe = unsafe popen(command, "w")
    else { return false }
    var text = text
    text.withUTF8 { bytes in
      // The person may leave the pager before it has read everything.
      _ = unsafe fwrite(bytes.baseAddress, 1, bytes.count, pipe)
    }
    return unsafe pclose(pipe) >= 0
  }
}
