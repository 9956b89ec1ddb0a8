import ArgumentParser
import Documents
import Larder

/// Named after what it prints, because `Console` is the one on a terminal.
struct ConsoleLink: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "console",
    abstract: "Prints a link to the server's console in a browser.",
    discussion: """
      The browser that opens the link has your rights, for twelve hours or until you log out there. The link works once, \
      within a minute. On a server without access rules, it is only the address of the console.

      The server needs a listener for HTTP, such as --listen http:127.0.0.1:7480. If it has several, larder prints a link \
      to each.

      Example: larder console
      Example: xdg-open "$(larder console)"
      """)

  @OptionGroup private var connection: ConnectionOptions

  func run() async throws {
    let client = try connection.client()
    let first = try await client.consoleLink()
    guard case .array(let urls)? = first["urls"] else { throw Self.unusableReply }
    var output = Output()
    for (index, url) in urls.enumerated() {
      // Each works once.
      let link = index == 0 ? first : try await client.consoleLink()
      let fragment = link["link"]?.string.map { "#link=\($0)" } ?? ""
      try output.writeLine(Self.checked("\(url.string ?? "")\(fragment)"))
    }
  }

  /// Returns a link of the server, which a shell or a browser may be about to open.
  static func checked(_ link: String) throws(CommandFailure) -> String {
    guard link.hasPrefix("http://") || link.hasPrefix("https://"), link.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
      throw unusableReply
    }
    return link
  }

  private static let unusableReply = CommandFailure(.refused, "the server's reply has no address of a console")
}
