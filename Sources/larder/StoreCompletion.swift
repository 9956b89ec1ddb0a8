import Larder
import Platform

/// Names of stores for a shell's completion, from the server that the command would speak to. No server, no names, no complaint.
enum StoreCompletion {
  /// Longer than a server on the same machine takes, shorter than a person notices.
  private static let patience = Duration.milliseconds(300)

  @Sendable
  static func names(_ words: [String], _ index: Int, _ prefix: String) async -> [String] {
    guard let address = try? address(words),
      let client = try? ConnectionOptions.client(of: address, timeout: patience),
      let stores = try? await client.stores()
    else { return [] }
    return stores.map(\.name).filter { $0.hasPrefix(prefix) }
  }

  private static func address(_ words: [String]) throws -> Address {
    for (word, next) in zip(words, words.dropFirst() + [""]) {
      if word == "--server" { return try Address(next) }
      if word.hasPrefix("--server=") { return try Address(String(word.dropFirst("--server=".count))) }
    }
    return try ConnectionOptions.addressInEnvironment() ?? .default
  }
}
