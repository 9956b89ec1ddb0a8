import DataSources
import Foundation
import Larder

/// Does what it is told, a line each, and answers with a line: `put ID CENTS TITLE`, `get ID`, `list`.
@main struct Main {
  static func main() async throws {
    let arguments = CommandLine.arguments
    let shop = try Bookshop(server: arguments.count > 1 ? arguments[1] : "unix:/run/larder.sock")
    while let line = readLine() {
      // Not print, which keeps lines back when nobody is at the other end but a program.
      FileHandle.standardOutput.write(Data((await answer(to: line, in: shop) + "\n").utf8))
    }
  }

  private static func answer(to line: String, in shop: Bookshop) async -> String {
    let words = line.split(separator: " ", maxSplits: 3).map(String.init)
    do {
      switch (words.first, words.count) {
      case ("get", 2):
        let book = try await shop.book(Int(words[1]) ?? 0)
        return "\(book.title), \(book.cents) cents"
      case ("put", 4):
        try await shop.keep(Book(title: words[3], cents: Int(words[2]) ?? 0), as: Int(words[1]) ?? 0)
        return "kept"
      case ("list", 1):
        return try await shop.firstBooks(10).map(\.title).joined(separator: "; ")
      default:
        return "say: put ID CENTS TITLE, get ID, or list"
      }
    } catch let error as DataSourceError where error.kind == .notFound {
      return "no such book"
    } catch let error as LarderError {
      return "the server is away (\(error.kind)); " + (error.isSafeToRetry ? "try again" : "look before you try again")
    } catch {
      return "\(error)"
    }
  }
}
