import Glibc

/// The terminal that standard output is.
enum Terminal {
  /// Columns of one that does not say.
  private static let usualWidth = 80

  static var width: Int {
    var size = winsize()
    guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return usualWidth }
    return Int(size.ws_col)
  }

  /// Has the C library take text for UTF-8, as all that is written here is, whatever the environment says. It holds for the process.
  static let isUTF8: Bool = unsafe setlocale(LC_CTYPE, "C.UTF-8") != nil
}
