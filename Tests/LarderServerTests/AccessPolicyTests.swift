import Platform
import Storage
import Testing

@testable import LarderServer

/// Which rules mean whom, where.
struct AccessPolicyTests {
  private let listeners = [
    Listener(name: "clients", address: .unix(path: "/run/a")), Listener(address: .unix(path: "/run/b")),
    Listener(name: "remote", address: .tcp(host: "127.0.0.1", port: 1)),
  ]
  private let web = Credentials(process: 1, user: 33, group: 34, supplementaryGroups: [35, 36])

  private func grants(_ peer: Credentials?, _ rules: [AccessRule], listener: Int = 0) throws -> Grants {
    try AccessPolicy(rules, listeners: listeners, owner: 500).grants(peer, listener: listener)
  }

  @Test func `without rules everybody may do everything, and with one only those whom it names`() throws {
    #expect(try grants(web, []) == .everything && grants(nil, [], listener: 2) == .everything)
    let rules = [AccessRule(.user(7), .read)]
    #expect(try grants(web, rules).isNothing && grants(nil, rules, listener: 2).isNothing)
    #expect(try grants(Credentials(process: 1, user: 7, group: 7), rules) == Grants(onAll: .read))
  }

  @Test func `root and the server's own user may do everything, by Unix sockets`() throws {
    for user: UInt32 in [0, 500] {
      #expect(try grants(Credentials(process: 1, user: user, group: 9), [AccessRule(.user(7), .read)]) == .everything)
    }
    #expect(
      try grants(
        Credentials(process: 1, user: 501, group: 0, supplementaryGroups: [500]), [AccessRule(.user(7), .read)]
      ).isNothing)
  }

  @Test(arguments: [AccessRule.Subject.user(33), .group(34), .group(35), .group(36), .unix])
  func `a rule means users, their groups, or everybody`(subject: AccessRule.Subject) throws {
    #expect(try grants(web, [AccessRule(subject, .write)]) == Grants(onAll: .write))
  }

  @Test(arguments: [AccessRule.Subject.user(34), .group(33), .group(37), .tcp])
  func `a rule does not mean others`(subject: AccessRule.Subject) throws {
    #expect(try grants(web, [AccessRule(subject, .write)]).isNothing)
  }

  @Test func `what rules say adds up, whatever their order`() throws {
    let (a, b) = (try StoreName("a"), try StoreName("b"))
    let rules = [
      AccessRule(.user(33), .read, store: a), AccessRule(.group(36), .admin, store: a), AccessRule(.unix, .read),
      AccessRule(.user(33), .write, store: b),
    ]
    for rules in [rules, rules.reversed()] {
      let grants = try grants(web, rules)
      #expect(grants == Grants(onAll: .read, onStores: [a: .admin, b: .write]))
      #expect(
        try [grants.right(on: a), grants.right(on: b), grants.right(on: StoreName("c"))] == [.admin, .write, .read])
    }
  }

  @Test func `a rule may be for one socket, by its name or its address`() throws {
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
      (AccessRule(.tcp, .read, listener: "clients"), "'clients' is a Unix socket"),
    ])
  func `a rule that holds for no socket is an error`(rule: AccessRule, complaint: String) throws {
    let error = try #require(throws: AccessError.self) { try AccessPolicy([rule], listeners: listeners) }
    #expect(error.description.contains(complaint), "\(error)")
  }

  @Test func `TCP sockets that let nobody in are known`() throws {
    func closed(_ rules: [AccessRule]) throws -> [String] {
      try AccessPolicy(rules, listeners: listeners).closedListeners.map(\.name)
    }
    #expect(try closed([]).isEmpty && closed([AccessRule(.tcp, .read)]).isEmpty)
    #expect(try closed([AccessRule(.unix, .read)]) == ["remote"])
  }
}

struct RefusalLogTests {
  /// The events of a log, as text.
  private func events(_ body: (RefusalLog) -> Void) -> [String] {
    let told = Lock<[String]>([])
    body(
      RefusalLog { event in
        switch event {
        case .refused(let refusal): told.withLock { $0.append(refusal.client) }
        case .leftOut(let count): told.withLock { $0.append("left out \(count)") }
        }
      })
    return told.withLock { $0 }
  }

  private func refusal(_ user: UInt32?) -> Refusal {
    Refusal(
      peer: user.map { Credentials(process: 1, user: $0, group: 1) }, client: user.map { "\($0)" } ?? "tcp",
      listener: Listener(address: .unix(path: "/s")), action: "write")
  }

  @Test func `ten of a user are told in a minute, and the others counted`() {
    let told = events { log in
      for second in 0..<130 { log.report(refusal(1), now: 1_000_000 + UInt64(second) * 1_000) }
    }
    let ten = Array(repeating: "1", count: 10)
    #expect(told == ten + ["left out 50"] + ten + ["left out 50"] + ten)
  }

  @Test func `one user hides no other, and all together are bounded`() {
    let told = events { log in
      for _ in 0..<1_000 { log.report(refusal(1), now: 5) }
      log.report(refusal(2), now: 5)
      log.report(refusal(nil), now: 5)
      for user: UInt32 in 3..<1_000 { log.report(refusal(user), now: 6) }
      log.reportSuppressed()
      log.reportSuppressed()
    }
    #expect(Array(told.prefix(12)) == Array(repeating: "1", count: 10) + ["2", "tcp"])
    #expect(told.count == 61 && told.last == "left out \(990 + 997 - 48)")
  }
}
