import Basics
import Platform

/// A client of a Larder server. A value that is cheap to copy and safe to use from any task; all copies share its connections, and
/// the last one to go closes them.
///
///     let larder = try LarderClient("unix:/run/larder.sock")
///     let items = larder.store("items")
///     try await items.put("apple", Array("red".utf8))
///     let apple = try await items.get("apple")
///
/// Nothing is connected before the first call, and a lost connection is made anew by itself. Each call has a deadline that covers all
/// of that, see `with(timeout:)`. A cancelled task's call ends at once with an error of kind `cancelled`.
public struct LarderClient: Sendable {
  let core: ClientCore
  let timeout: UInt64

  /// - Parameter address: `unix:/path/to.sock` or `tcp:HOST:PORT`, with an IPv6 host in square brackets.
  /// - Throws: `illegalArgument` for a text that is not an address, `failed` when the process can have no more descriptors.
  public init(_ address: String, configuration: Configuration = Configuration()) throws(LarderError) {
    let parsed: Address
    do { parsed = try Address(address) } catch {
      throw LarderError(.illegalArgument, outcome: .rejected, error.description)
    }
    do { core = try ClientCore(parsed, configuration) } catch {
      throw LarderError(.failed, outcome: .notExecuted, "can't make a client: \(error)")
    }
    timeout = configuration.timeout.wholeMilliseconds
  }

  private init(_ core: ClientCore, timeout: UInt64) {
    self.core = core
    self.timeout = timeout
  }

  /// The same client, whose calls have this long: to wait for a connection and their turn, and to get the reply.
  public func with(timeout: Duration) -> LarderClient {
    LarderClient(core, timeout: timeout.wholeMilliseconds)
  }

  /// A store of the server's by its name. Nothing is sent before the first call; a store that does not exist is found out then.
  public func store(_ name: String) -> RemoteStore {
    RemoteStore(core, core.store(name), timeout: timeout)
  }

  /// Closes the connections at once. Calls under way, and all calls from now on, fail with `closed`.
  public func close() {
    core.close()
  }

  /// Refuses new calls, waits for those under way (within their deadlines), and closes the connections.
  public func shutdown() async {
    await core.shutdown()
  }

  /// What the server calls itself, with its version; nil before the first connection. It may hold any text.
  package var serverName: String? { core.connections[0].state.withLock { $0.serverName } }

  /// The time of a call that begins now.
  var time: CallTime { CallTime(timeout) }
}
