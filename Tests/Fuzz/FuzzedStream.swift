import Platform
import Storage
import Tokens
import Wire

/// What the targets share that run the server's processing on a stream of requests. For fuzzing, this file is compiled as
/// part of the module LarderServer.
enum FuzzedStream {
  /// Where jobs and messages go.
  static let mailbox: Mailbox = {
    do { return try Mailbox() } catch { fatalError("no mailbox: \(error)") }
  }()

  /// A policy without rules, which names the socket in refusals.
  static let policy: AccessPolicy = {
    do { return try AccessPolicy([], listeners: [Listener(address: .unix(path: "/s"))]) } catch {
      fatalError("no policy: \(error)")
    }
  }()

  /// The token of the only client that `policyOfToken` admits.
  static let token = "ldr_TBvIWntuSTcHpjE9QhguJj9ZTNrkIcp0yw5cEarDyOI0Vblxm"

  /// A policy that admits only the owner of a token.
  static let policyOfToken: AccessPolicy = {
    guard let digest = AccessToken(token)?.digest else { fatalError("no token") }
    let tokens = TokenTable([TokenRecord(name: "job", digest: digest, created: 0, expiry: nil)])
    let listeners = [Listener(address: .unix(path: "/s"))]
    do { return try AccessPolicy([AccessRule(.principal("job"), .admin)], listeners: listeners, tokens: tokens) } catch
    {
      fatalError("no policy: \(error)")
    }
  }()

  /// What keys begin with that a client may write that may do nothing else.
  static let keyPrefix = "f"

  /// What that client may do.
  private static let grantsOfPrefix: Grants = {
    var grants = Grants()
    for name in ["a", "b"] {
      guard let store = try? StoreName(name) else { fatalError("no name") }
      grants.add(AccessRule(.unix, .write, store: store, keyPrefix: keyPrefix))
    }
    return grants
  }()

  /// Returns an open connection to a server, without a socket.
  static func connect(_ session: any Session, to server: ServerState, now: UInt64) -> Connection {
    let sharer = ConnectionSharer(Sharer(.anonymous, connection: 1))
    var connection = Connection(
      ByteChannel(Descriptor(owning: -1)), token: ConnectionToken(0), session, listener: 0,
      server.registry.add(.unknown, now: now), sharer, input: InputMemory(server.buffers, sharer) {},
      clientState: session.makeClientState(server, mailbox, sharer), now: now)
    connection.phase = .open
    return connection
  }

  /// Checks that a stream gets the same replies when it is split in two, and runs it for a client that may only read, and
  /// for one that may only write some keys. The first byte selects where the stream is split.
  /// - Parameters:
  ///   - isRepeatable: Whether a stream gets the same replies every time.
  ///   - replies: Returns the replies to a client with certain rights when the stream is split at an offset.
  static func check(
    _ start: UnsafePointer<UInt8>, _ count: Int, isRepeatable: (RawSpan) -> Bool = { _ in true },
    _ replies: (Grants, RawSpan, Int) -> [UInt8]
  ) {
    guard count > 0 else { return }
    let bytes = unsafe RawSpan(_unsafeStart: start, byteCount: count)
    let stream = bytes.extracting(1..<count)
    let split = Int(bytes.integer(at: 0, as: UInt8.self)!) * stream.byteCount / 255
    if replies(.everything, stream, stream.byteCount) != replies(.everything, stream, split), isRepeatable(stream) {
      fatalError("the stream gets other replies when it is split at \(split)")
    }
    _ = replies(Grants(onAll: .read), stream, split)
    _ = replies(grantsOfPrefix, stream, split)
  }

  /// Checks that a client with rights to some keys has changed nothing else in a store.
  static func checkKeys(of store: Store, _ grants: Grants) {
    guard grants.rights(to: store.name).dependOnKeys else { return }
    let (all, own) = store.access { map in
      unsafe (map.count(prefix: RawSpan(), now: 0), map.count(prefix: Array(keyPrefix.utf8).span.bytes, now: 0))
    }
    if all != own { fatalError("a client that may only write some keys has written others") }
  }
}
