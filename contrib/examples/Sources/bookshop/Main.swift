import DataSources
import Foundation
import Larder

/// Reads one command per line (`put ID CENTS TITLE`, `get ID` or `list`) and answers each with one line.
@main struct Main {
  static func main() async throws {
    let arguments = CommandLine.arguments
    let shop = try Bookshop(server: arguments.count > 1 ? arguments[1] : "unix:/run/larder.sock")
    while let line = readLine() {
      // Not print, which buffers lines unless standard output is a terminal.
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
        try await shop.save(Book(title: words[3], cents: Int(words[2]) ?? 0), as: Int(words[1]) ?? 0)
        return "saved"
      case ("list", 1):
        return try await shop.firstBooks(10).map(\.title).joined(separator: "; ")
      default:
        return "commands: put ID CENTS TITLE, get ID, list"
      }
    } catch let error as DataSourceError where error.kind == .notFound {
      return "no such book"
    } catch let error as LarderError {
      return "the server is unavailable (\(error.kind)); "
        + (error.isSafeToRetry ? "try again" : "check the result before you try again")
    } catch {
      return "\(error)"
    }
  }
}
