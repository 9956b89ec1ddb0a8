import Larder
import Platform

/// What the commands of one console share: a client, whose connection stays, and how they print. A command finds it as the task's own;
/// outside of a console there is none.
final class ConsoleSession: Sendable {
  @TaskLocal static var current: ConsoleSession?

  enum Format: String, CaseIterable {
    case table, json
  }

  let address: Address
  let timeout: Duration
  let client: LarderClient
  private let chosenFormat = Lock(Format.table)

  init(_ address: Address, timeout: Duration) throws {
    self.address = address
    self.timeout = timeout
    client = try ConnectionOptions.client(of: address, timeout: timeout, rest: .milliseconds(100))
  }

  var format: Format {
    get { chosenFormat.withLock { $0 } }
    set { chosenFormat.withLock { $0 = newValue } }
  }
}
