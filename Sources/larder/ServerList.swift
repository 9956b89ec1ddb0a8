import Platform

/// The address of a server, or those of several servers that share stores, separated by commas.
struct ServerList: Equatable, CustomStringConvertible {
  /// 1 to 8 addresses, as many as a client can have.
  let addresses: [Address]

  init(_ address: Address) { addresses = [address] }

  /// - Throws: `AddressError` or `CommandFailure` if the text is none.
  init(_ text: String) throws {
    addresses = try text.split(separator: ",", omittingEmptySubsequences: false).map { try Address(String($0)) }
    guard addresses.count <= 8 else {
      throw CommandFailure(.usage, "there are \(addresses.count) addresses of servers; use 8 at most")
    }
  }

  var description: String { addresses.map(\.description).joined(separator: ",") }

  /// The address, if there is only one.
  var onlyAddress: Address? { addresses.count == 1 ? addresses[0] : nil }
}
