import Dispatch
import Documents
import Glibc
import Platform
import Storage
import Testing
import Tokens
import Wire

@testable import LarderServer

extension ServerTests {
  /// What TCP clients may do. Clients of Unix sockets have the user of the tests, and other users only in the system
  /// tests, as root.
  struct AccessTests {
    @Test func `a request that is not permitted changes nothing`() throws {
      let server = try TestServer(tcp: true, rules: [AccessRule(.tcp, .read)])
      let client = try server.connect()
      let writes = [Request.put("a", [1], id: 3), Request.putMany([("b", [1])], id: 4), Request.put("c", [1], id: 5)]
      try client.send(writes.flatMap { $0 } + Request.make(.count, id: 6))
      for id: UInt32 in 3...5 { #expect(try client.receive().isError(.notPermitted, id: id)) }
      #expect(try client.receive().number == 0)
      #expect(try client.figures()["stores"] == 1 && client.figures(store: 1)["revision"] == 0)
      #expect(
        try client.call(Request.make(.storeDrop, store: 0, id: 7, Array("test".utf8))).isError(.notPermitted, id: 7))
      #expect(try client.call(Request.get("a", id: 8)).isError(.notFound, id: 8))
    }

    @Test func `a client without rights is refused in reply to its hello, and the requests after it are not executed`()
      throws
    {
      let events = Lock<[RefusalLog.Event]>([])
      let server = try TestServer(
        tcp: true, rules: [AccessRule(.unix, .admin)], onRefusal: { event in events.withLock { $0.append(event) } })
      let client = try TestClient(server.address)
      var hello = ByteBuffer()
      hello.appendRequest(ClientHello(credit: 1, name: "test"), id: 7)
      try client.send(hello.toArray() + Request.create("new", id: 8))
      #expect(try client.receive().isError(.notPermitted, id: 7))
      #expect(try client.isClosed())
      #expect(eventually { events.withLock { $0.count } == 1 })
      guard case .refused(let refusal) = events.withLock({ $0[0] }) else {
        Issue.record("the refusal is not reported")
        return
      }
      #expect(
        refusal.client.listener == Listener(address: server.address) && refusal.client.peer.origin == .host("127.0.0.1")
      )
      #expect(refusal.clientName == "a TCP client" && refusal.action == "use this server" && refusal.reason == nil)
      #expect(server.server.closedListeners.map(\.address) == [server.address])
    }

    @Test func `new rules apply to open connections as soon as the change returns`() throws {
      let server = try TestServer(workers: 2, stores: ["test", "other"], tcp: true, rules: [AccessRule(.tcp, .write)])
      let clients = try (0..<8).map { _ in try server.connect(credit: 1) }
      for client in clients {
        #expect(try client.call(Request.put("a", [UInt8](repeating: 1, count: 70_000), id: 3)).isDone)
      }
      #expect(try clients[0].call(Request.put("b", [UInt8](repeating: 1, count: 70_000), id: 3)).isDone)
      for client in clients { #expect(try client.call(Request.all(id: 4)).more) }
      func change(_ rules: [AccessRule]) throws {
        try server.server.change(stores: [], limits: ServerLimits(), rules: rules)
      }
      let other = try StoreName("other")
      try change([AccessRule(.tcp, .read, store: other)])
      for client in clients {
        #expect(try client.receive().isError(.notPermitted, id: 4))
        #expect(try client.call(Request.get("a", id: 5)).isError(.notPermitted, id: 5))
        #expect(try client.call(Request.open("other", id: 6)).isDone)
      }
      // An invalid rule leaves the others in force.
      #expect(throws: AccessError.self) { try change([AccessRule(.tcp, .admin, listener: "nowhere")]) }
      #expect(try clients[0].call(Request.get("a", id: 7)).isError(.notPermitted, id: 7))
      try change([])
      for client in clients { #expect(try client.call(Request.put("a", [2], id: 8)).isDone) }
      try change([AccessRule(.unix, .read)])
      for client in clients {
        #expect(try client.receive().isNotice(.notPermitted))
        #expect(try client.isClosed())
      }
    }
  }
}

extension ServerTests {
  /// What clients and administrators are told about rights.
  struct RightsQuestionTests {
    private func json(_ reply: Reply) throws -> JSONValue {
      #expect(reply.isDone, "\(reply)")
      return try JSONValue(parsing: reply.body.span)
    }

    @Test func `a client is told who it is and what it may do`() throws {
      let (test, token) = (try StoreName("test"), AccessToken())
      let record = TokenRecord(name: "job", digest: token.digest, created: 0, expiry: 1 << 40)
      let server = try TestServer(
        rules: [
          AccessRule(.user(geteuid()), .read), AccessRule(.principal("job"), .write, store: test, keyPrefix: "b"),
          AccessRule(.principal("job"), .write, store: test, keyPrefix: "a"),
        ], tokens: TokenTable([record]))
      let request = Request.make(.whoami, store: 0, id: 5)
      var identity = try json(try server.connect().call(request))
      #expect(identity["user"]?.integer == Int64(geteuid()) && identity["principal"] == nil && identity["proof"] == nil)
      #expect(identity["groups"]?.array?.first?.integer == Int64(getegid()))
      #expect(identity["rights"] == [["right": "read"]])
      let client = try TestClient(server.address)
      try client.handshake(token: token.text)
      identity = try json(try client.call(request))
      #expect(
        identity["principal"] == "job" && identity["proof"] == "token" && identity["expires"] == .integer(1 << 40))
      #expect(
        identity["rights"] == [
          ["right": "read"], ["right": "write", "keyPrefix": "a", "store": "test"],
          ["right": "write", "keyPrefix": "b", "store": "test"],
        ])
    }

    @Test func `an administrator is told when tokens were last used`() throws {
      let (used, unused) = (AccessToken(), AccessToken())
      let records = [
        TokenRecord(name: "used", digest: used.digest, created: 5, expiry: nil),
        TokenRecord(name: "idle", digest: unused.digest, created: 6, expiry: 1 << 40),
      ]
      let server = try TestServer(rules: [AccessRule(.unix, .admin)], tokens: TokenTable(records))
      let before = Int64(time(nil))
      try TestClient(server.address).handshake(token: used.text)
      let tokens = try json(try server.connect().call(Request.make(.tokenList, store: 0, id: 5)))
      #expect(tokens[0] == ["name": "idle", "created": 6, "expires": .integer(1 << 40)])
      #expect(tokens[1]?["name"] == "used" && tokens[1]?["expires"] == nil && tokens[2] == nil)
      let lastUse = try #require(tokens[1]?["lastUsed"]?.integer)
      #expect((before...before + 10).contains(lastUse))
    }

    @Test func `an administrator is told what would happen, and which rule says so`() throws {
      let test = try StoreName("test")
      let rules = [
        AccessRule(.user(geteuid()), .admin), AccessRule(.principal("web"), .read, store: test),
        AccessRule(.principal("web"), .write, store: test, keyPrefix: "eu:"), AccessRule(.group(77), .read),
        AccessRule(.tcp, .read),
      ]
      let server = try TestServer(rules: rules)
      let client = try server.connect()
      func ask(_ question: String) throws -> [JSONValue] {
        try json(try client.call(Request.make(.rulesCheck, store: 0, id: 5, Array(question.utf8)))).array ?? []
      }
      func number(_ question: String) throws -> Int64? {
        let decisions = try ask(question)
        #expect(decisions.count == 1 && decisions[0]["listener"] == .string("\(server.address)"))
        #expect(decisions[0]["permitted"]?.bool == (decisions[0]["number"] != nil), "\(decisions)")
        return decisions[0]["number"]?.integer
      }
      #expect(try number(#"{"principal": "web", "operation": "get", "store": "test", "key": "us:1"}"#) == 2)
      #expect(try number(#"{"principal": "web", "operation": "put", "store": "test", "key": "eu:1"}"#) == 3)
      #expect(try number(#"{"principal": "web", "operation": "put", "store": "test", "key": "us:1"}"#) == nil)
      #expect(try number(#"{"principal": "web", "operation": "put", "store": "test"}"#) == nil)
      #expect(try number(#"{"principal": "web", "operation": "store-open", "store": "test"}"#) == 2)
      #expect(try number(#"{"principal": "web", "operation": "stats"}"#) == nil)
      #expect(try number(#"{"user": 9, "groups": [8, 77], "operation": "stats"}"#) == 4)
      #expect(try number(#"{"user": 9, "groups": [8], "operation": "find", "store": "test"}"#) == nil)
      #expect(try ask(#"{"principal": "web", "operation": "ping"}"#)[0]["permitted"] == true)
      // An anonymous client can't connect to a Unix socket.
      #expect(try ask(#"{"operation": "get", "store": "test", "key": "a"}"#).isEmpty)
      let decision = try ask(#"{"principal": "web", "operation": "put", "store": "test", "key": "eu:1"}"#)[0]
      #expect(decision["rule"] == "principal:web=write:test/eu:*")
    }
  }
}

/// Which rules match which clients on which sockets.
struct AccessPolicyTests {
  private let listeners = [
    Listener(name: "clients", address: .unix(path: "/run/a")), Listener(address: .unix(path: "/run/b")),
    Listener(name: "remote", address: .tcp(host: "127.0.0.1", port: 1)),
    Listener(name: "secure", address: .tls(host: "127.0.0.1", port: 2)),
  ]
  private let web = Credentials(process: 1, user: 33, group: 34, supplementaryGroups: [35, 36])

  private func grants(_ peer: Credentials?, _ rules: [AccessRule], listener: Int = 0) throws -> Grants {
    try AccessPolicy(rules, listeners: listeners)
      .grants(ClientIdentity(credentials: peer), listener: listener, now: 0)
  }

  @Test func `without rules, every client may do everything; with a rule, only clients that it matches`() throws {
    #expect(try grants(web, []) == .everything && grants(nil, [], listener: 2) == .everything)
    let rules = [AccessRule(.user(7), .read)]
    #expect(try grants(web, rules).isNothing && grants(nil, rules, listener: 2).isNothing)
    #expect(try grants(Credentials(process: 1, user: 7, group: 7), rules) == Grants(onAll: .read))
  }

  @Test func `rules bind root and the server's own user, too`() throws {
    for user in [0, geteuid()] {
      let peer = Credentials(process: 1, user: user, group: 9)
      #expect(try grants(peer, [AccessRule(.user(7), .read)]).isNothing)
      #expect(try grants(peer, [AccessRule(.user(user), .read)]) == Grants(onAll: .read))
    }
  }

  @Test(arguments: [AccessRule.Subject.user(33), .group(34), .group(35), .group(36), .unix])
  func `a rule matches a user, a group, or every client`(subject: AccessRule.Subject) throws {
    #expect(try grants(web, [AccessRule(subject, .write)]) == Grants(onAll: .write))
  }

  @Test(arguments: [AccessRule.Subject.user(34), .group(33), .group(37), .tcp])
  func `a rule does not match other clients`(subject: AccessRule.Subject) throws {
    #expect(try grants(web, [AccessRule(subject, .write)]).isNothing)
  }

  @Test func `a rule matches the owner of a certificate, or every client with TLS`() throws {
    func grants(_ principal: String?, _ rules: [AccessRule]) throws -> Grants {
      let certificate = principal.map { PeerCertificate(principal: $0, serial: "1", issuer: "CN=authority") }
      return try AccessPolicy(rules, listeners: listeners)
        .grants(ClientIdentity(certificate: certificate), listener: 3, now: 0)
    }
    let rules = [AccessRule(.principal("web.example"), .write)]
    #expect(try grants("web.example", rules) == Grants(onAll: .write))
    for other in [nil, "web.example.org", "WEB.EXAMPLE", ""] { #expect(try grants(other, rules).isNothing) }
    #expect(try grants(nil, [AccessRule(.tls, .read)]) == Grants(onAll: .read))
    #expect(try grants("web.example", rules + [AccessRule(.tls, .read)]) == Grants(onAll: .write))
    for subject in [.tcp, .unix, .user(33)] as [AccessRule.Subject] {
      #expect(try grants("web.example", [AccessRule(subject, .admin)]).isNothing)
    }
  }

  @Test func `a rule matches the owner of a token on every socket, until the token expires`() throws {
    let token = AccessToken().digest
    let table = TokenTable([TokenRecord(name: "job", digest: token, created: 0, expiry: 100)])
    let policy = try AccessPolicy(
      [AccessRule(.principal("job"), .write)], listeners: listeners, tokens: table)
    for listener in listeners.indices {
      #expect(policy.grants(ClientIdentity(token: token), listener: listener, now: 99) == Grants(onAll: .write))
      #expect(policy.grants(ClientIdentity(token: token), listener: listener, now: 100).isNothing)
      #expect(policy.grants(ClientIdentity(token: AccessToken().digest), listener: listener, now: 99).isNothing)
    }
    #expect(table.hasExpiry(after: 99, upTo: 100) && !table.hasExpiry(after: 100, upTo: 200))
  }

  @Test func `a TLS socket that other machines can reach admits nobody without a rule`() throws {
    let remote = Listener(address: .tls(host: "0.0.0.0", port: 1), isLocal: false)
    let policy = try AccessPolicy([], listeners: listeners + [remote])
    #expect(!policy.isOpen)
    for index in 0...4 { #expect(policy.grants(ClientIdentity(), listener: index, now: 0).isNothing) }
    #expect(policy.closedListeners.map(\.name) == ["remote", "secure", ""])
    #expect(try AccessPolicy([], listeners: listeners).isOpen)
  }

  @Test func `rules add up in any order`() throws {
    let (a, b) = (try StoreName("a"), try StoreName("b"))
    let rules = [
      AccessRule(.user(33), .read, store: a), AccessRule(.group(36), .admin, store: a), AccessRule(.unix, .read),
      AccessRule(.user(33), .write, store: b),
    ]
    for rules in [rules, rules.reversed()] {
      let grants = try grants(web, rules)
      #expect(grants == Grants(onAll: .read, onStores: [a: StoreRights(.admin), b: StoreRights(.write)]))
      #expect(
        try [grants.right(to: a), grants.right(to: b), grants.right(to: StoreName("c"))] == [.admin, .write, .read])
    }
  }

  @Test func `rights to keys add up, and the longest prefix needn't decide`() throws {
    let store = try StoreName("a")
    let rules = [
      AccessRule(.unix, .read, store: store, keyPrefix: "b"), AccessRule(.unix, .write, store: store, keyPrefix: "bc"),
      AccessRule(.unix, .write, store: store, keyPrefix: "d"), AccessRule(.unix, .read, store: store, keyPrefix: "de"),
    ]
    for rules in [rules, rules.reversed()] {
      let rights = try grants(web, rules).rights(to: store)
      let found = ["", "a", "b", "bb", "bc", "bcd", "d", "de", "e"].map {
        unsafe rights.right(to: Array($0.utf8).span.bytes)
      }
      #expect(found == [.nothing, .nothing, .read, .read, .write, .write, .write, .write, .nothing])
      #expect(rights.toAll == .nothing && rights.toAny == .write && rights.dependOnKeys)
      #expect(rights.readablePrefixes == [Array("b".utf8), Array("d".utf8)])
      #expect(rights.includes(try grants(web, Array(rules.prefix(2))).rights(to: store)))
      #expect(!StoreRights(.read).includes(rights) && StoreRights(.write).includes(rights))
    }
    // The right to all of a store makes those to some of its keys superfluous.
    let all = try grants(web, rules + [AccessRule(.unix, .write, store: store)]).rights(to: store)
    #expect(all == StoreRights(.write) && !all.dependOnKeys)
  }

  @Test func `a role gives its members what its rules grant, on the sockets that each can connect to`() throws {
    let role = AccessRole("operators", [.user(33), .principal("ops.example"), .tcp])
    let policy = try AccessPolicy([AccessRule(.role("operators"), .write)], roles: [role], listeners: listeners)
    func isAdmitted(_ client: ClientIdentity, _ listener: Int) -> Bool {
      policy.grants(client, listener: listener, now: 0) == Grants(onAll: .write)
    }
    let certificate = PeerCertificate(principal: "ops.example", serial: "1", issuer: "CN=authority")
    #expect(isAdmitted(ClientIdentity(credentials: web), 0) && isAdmitted(ClientIdentity(), 2))
    #expect(isAdmitted(ClientIdentity(certificate: certificate), 3))
    #expect(!isAdmitted(ClientIdentity(credentials: Credentials(process: 1, user: 7, group: 33)), 0))
    // The role has TCP clients, not TLS clients.
    #expect(!isAdmitted(ClientIdentity(), 3))
    let error = try #require(throws: AccessError.self) {
      try AccessPolicy([AccessRule(.role("operator"), .read)], roles: [role], listeners: listeners)
    }
    #expect(error.description == "access: there is no role 'operator'; roles has operators")
  }

  @Test func `a rule can apply to one socket, by name or by address`() throws {
    for (name, allowed) in [("clients", [true, false]), ("unix:/run/b", [false, true])] {
      let rules = [AccessRule(.user(33), .read, listener: name)]
      #expect(try [0, 1].map { try !grants(web, rules, listener: $0).isNothing } == allowed)
    }
    #expect(try !grants(nil, [AccessRule(.tcp, .read, listener: "remote")], listener: 2).isNothing)
  }

  @Test(
    arguments: [
      (
        AccessRule(.unix, .read, listener: "nowhere"),
        "called 'nowhere'; the listeners are clients (unix:/run/a), unix:/run/b, remote"
      ),
      (AccessRule(.user(33), .read, listener: "remote"), "'remote' is TCP"),
      (AccessRule(.tcp, .read, listener: "secure"), "'secure' is TLS: its rules begin with principal or tls"),
      (AccessRule(.tcp, .read, listener: "clients"), "'clients' is a Unix socket"),
    ])
  func `a rule that applies to no socket is an error`(rule: AccessRule, expectedMessage: String) throws {
    let error = try #require(throws: AccessError.self) { try AccessPolicy([rule], listeners: listeners) }
    #expect(error.description.contains(expectedMessage), "\(error)")
  }

  @Test func `TCP sockets that admit no client are reported`() throws {
    func closed(_ rules: [AccessRule]) throws -> [String] {
      try AccessPolicy(rules, listeners: listeners).closedListeners.map(\.name)
    }
    #expect(try closed([]).isEmpty && closed([AccessRule(.tcp, .read), AccessRule(.tls, .read)]).isEmpty)
    #expect(try closed([AccessRule(.unix, .read)]) == ["remote", "secure"])
    #expect(try closed([AccessRule(.principal("a"), .read)]).isEmpty)
  }
}

struct RefusalLogTests {
  /// Returns the events of a log as text.
  private func events(_ body: (RefusalLog) -> Void) -> [String] {
    let events = Lock<[String]>([])
    body(
      RefusalLog { event in
        switch event {
        case .refused(let refusal): events.withLock { $0.append(refusal.clientName) }
        case .suppressed(let count, _): events.withLock { $0.append("left out \(count)") }
        }
      })
    return events.withLock { $0 }
  }

  private func refusal(_ user: UInt32?) -> Refusal {
    let peer = user.map { Peer.process(id: 1, user: $0) } ?? .address("a:1")
    return Refusal(
      client: AuditClient(listener: Listener(address: .unix(path: "/s")), peer: peer),
      clientName: user.map { "\($0)" } ?? "tcp", action: "write", reason: nil)
  }

  @Test func `ten refusals per user are logged each minute, and the others are counted`() {
    let logged = events { log in
      for second in 0..<130 { log.report(refusal(1), now: 1_000_000 + UInt64(second) * 1_000) }
    }
    let ten = Array(repeating: "1", count: 10)
    #expect(logged == ten + ["left out 50"] + ten + ["left out 50"] + ten)
  }

  @Test func `refusals of one user don't hide those of another, and their log is limited`() {
    let logged = events { log in
      for _ in 0..<1_000 { log.report(refusal(1), now: 5) }
      log.report(refusal(2), now: 5)
      log.report(refusal(nil), now: 5)
      for user: UInt32 in 3..<1_000 { log.report(refusal(user), now: 6) }
      log.reportSuppressed()
      log.reportSuppressed()
    }
    #expect(Array(logged.prefix(12)) == Array(repeating: "1", count: 10) + ["2", "tcp"])
    #expect(logged.count == 61 && logged.last == "left out \(990 + 997 - 48)")
  }
}

struct UserNamesTests {

  @Test func `users are shown by name, and each is looked up once`() {
    let lookups = Lock(0)
    let names = UserNames { user in
      lookups.withLock { $0 += 1 }
      return user == 33 ? "web" : nil
    }
    #expect(names.client(33) == "uid 33")
    let answers = DispatchGroup()
    for user: UInt32 in [33, 34, 33, 34] {
      answers.enter()
      if !names.ask(for: user, { answers.leave() }) { answers.leave() }
    }
    answers.wait()
    #expect(names.client(33) == "user web (uid 33)" && names.client(34) == "uid 34")
    #expect(!names.ask(for: 33) {} && !names.ask(for: 34) {})
    #expect(lookups.withLock { $0 } == 2)
  }

  @Test func `a user lookup that hangs doesn't block clients or start other lookups`() {
    let finish = DispatchSemaphore(value: 0)
    let lookups = Lock<[UInt32]>([])
    let names = UserNames { user in
      lookups.withLock { $0.append(user) }
      finish.wait()
      return "web"
    }
    let answered = DispatchSemaphore(value: 0)
    #expect(names.ask(for: 33) { answered.signal() })
    names.giveUp(on: 33)
    for user in 33...40 as ClosedRange<UInt32> {
      #expect(!names.ask(for: user) {})
      #expect(names.client(user) == "uid \(user)")
    }
    finish.signal()
    answered.wait()
    #expect(lookups.withLock { $0 } == [33])
    #expect(names.client(33) == "user web (uid 33)")
    finish.signal()
    #expect(names.ask(for: 34) { answered.signal() })
    answered.wait()
  }
}

struct PausedRefusalTests {
  @Test func `a connection pauses until the refusal of its request can name its user`() throws {
    let server = ServerState(limits: ServerLimits(), workerCount: 1, findThreadCount: 1)
    server.accessControl.change(try AccessPolicy([], listeners: [Listener(address: .unix(path: "/s"))]))
    let mailbox = try Mailbox()
    var executor = Executor(server: server, metrics: server.workers[0], mailbox: mailbox)
    executor.beginWakeup(now: 1_000)
    let session = NativeSession()
    var ends: [Int32] = [-1, -1]
    try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    defer { close(ends[1]) }
    let sharer = ConnectionSharer(Sharer(.anonymous, connection: 1))
    var connection = Connection(
      ByteChannel(Descriptor(owning: ends[0])), token: ConnectionToken(0), session, listener: 0,
      server.registry.add(.process(id: getpid(), user: getuid()), now: 1_000),
      sharer, input: InputMemory(server.buffers, sharer) {}, clientState: nil, now: 1_000)
    connection.phase = .open
    var replies = ReplyBuffer()
    let requests = Request.create("new", id: 7) + Request.create("newer", id: 8)
    var consumed = unsafe session.process(
      requests.span.bytes, of: &connection, prefetchEnd: 0, on: &executor, into: &replies)
    let (isPaused, isSilent) = (connection.waits.isPaused, replies.isEmpty)
    #expect(consumed == 0 && isPaused && isSilent)
    while connection.waits.isPaused {
      for pause in mailbox.read().endedPauses where connection.waits.isPaused(as: pause) {
        session.endPause(of: &connection, isOverdue: false, on: &executor, into: &replies)
      }
    }
    consumed = unsafe session.process(
      requests.span.bytes, of: &connection, prefetchEnd: 0, on: &executor, into: &replies)
    #expect(consumed == requests.count)
    let text = String(decoding: replies.bytes.toArray(), as: UTF8.self)
    let name = userName(ofID: getuid()).map { "user \($0) (uid \(getuid()))" } ?? "uid \(getuid())"
    #expect(text.contains("\(name) may not create store new") && text.contains("\(name) may not create store newer"))
  }
}
