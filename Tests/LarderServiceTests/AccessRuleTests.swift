import LarderServer
import LarderService
import Storage
import Testing

/// The setting `access`.
struct AccessRuleTests {
  private func parse(_ texts: [String]) throws -> [AccessRule] {
    try SettingsLoader(flags: ["access": texts, "roles": ["operators=tcp"]]).load().settings.server.accessRules
  }

  @Test func `a rule grants a right to a subject, for a store and a listener`() throws {
    let sessions = try StoreName("sessions")
    #expect(
      try parse([
        "user:root=read", "user:4711=write:sessions", "group:root=admin@clients",
        "unix=read:sessions@unix:/run/a=b@c/s", "tcp=write@tcp:[::1]:7411", "unix=read@unix:@abstract",
        "principal:spiffe://example/web=write:sessions", "tls=read@tls:0.0.0.0:7464",
        "role:operators=write:sessions/eu:a%40b/=%25*@clients",
      ]) == [
        AccessRule(.user(0), .read), AccessRule(.user(4_711), .write, store: sessions),
        AccessRule(.group(0), .admin, listener: "clients"),
        AccessRule(.unix, .read, store: sessions, listener: "unix:/run/a=b@c/s"),
        AccessRule(.tcp, .write, listener: "tcp:[::1]:7411"), AccessRule(.unix, .read, listener: "unix:@abstract"),
        AccessRule(.principal("spiffe://example/web"), .write, store: sessions),
        AccessRule(.tls, .read, listener: "tls:0.0.0.0:7464"),
        AccessRule(.role("operators"), .write, store: sessions, keyPrefix: "eu:a@b/=%", listener: "clients"),
      ])
  }

  @Test(
    arguments: [
      ("root", "'root' is not WHO=RIGHT"), ("", "'' is not WHO=RIGHT"),
      ("root=read", "'root' is not one of user:NAME, group:NAME, unix, tcp"),
      ("unix:root=read", "'unix:root' is not one of"), ("user=read", "'user' is not one of"),
      ("user:=read", "there is no user ''"),
      ("user:nobody-of-that-name=read", "there is no user 'nobody-of-that-name' on this machine"),
      ("group:nobody-of-that-name=read", "there is no group 'nobody-of-that-name' on this machine"),
      ("user:-1=read", "there is no user '-1'"), ("user:4294967295=read", "there is no user '4294967295'"),
      ("unix=nothing", "'nothing' is not one of read, write, admin"), ("unix=", "'' is not one of"),
      ("unix=READ", "'READ' is not one of"), ("unix=read:", "name"), ("unix=read:a+b", "name"),
      ("unix=read:a/", "must follow /"), ("unix=read:a/b", "must follow /"), ("unix=read:a/*", "must follow /"),
      ("unix=read:a/%4*", "is not the beginning of keys"), ("unix=read:a/%ff*", "is not the beginning of keys"),
      ("unix=read:a/b**", "is not the beginning of keys"), ("unix=admin:a/b*", "admin is a right to a whole store"),
      ("role:=read", "the name of a role must follow"),
      ("unix=read@", "must follow @"),
      ("user:root=read@tcp:127.0.0.1:1", "rules for tcp:127.0.0.1:1 begin with principal or tcp"),
      ("tcp=read@unix:/s", "unix:/s is a Unix socket"),
      ("principal:=read", "the name of a certificate or a token must follow"),
      ("tcp=read@tls:127.0.0.1:1", "rules for tls:127.0.0.1:1 begin with principal or tls"),
    ])
  func `an invalid rule is an error that says what is wrong`(text: String, reason: String) throws {
    let error = try #require(throws: SettingsError.self) { try parse([text]) }
    #expect(
      error.problems.count == 1 && error.problems[0].hasPrefix("access, item 1: ")
        && error.problems[0].contains(reason),
      "\(error)")
  }

  @Test func `a role has members, which are not roles`() throws {
    func roles(_ text: String) throws -> [AccessRole] {
      try SettingsLoader(flags: ["roles": [text]]).load().settings.server.accessRoles
    }
    #expect(
      try roles("operators=user:root+principal:ops.example+tcp")
        == [AccessRole("operators", [.user(0), .principal("ops.example"), .tcp])])
    for (text, reason) in [
      ("operators", "is not NAME=WHO+WHO…"), ("=tcp", "is not NAME=WHO+WHO…"), ("a=", "'' is not one of user:NAME"),
      ("a=tcp+", "'' is not one of user:NAME"), ("a=role:b", "a role can't be a member of a role"),
    ] {
      let error = try #require(throws: SettingsError.self) { try roles(text) }
      #expect(error.problems.count == 1 && error.problems[0].contains(reason), "\(error)")
    }
  }

  @Test func `rules come from an environment variable, separated by commas`() throws {
    let read = try SettingsLoader(environment: ["LARDERD_ACCESS": "user:0=read,unix=admin:a@clients"]).load()
    #expect(read.settings.server.accessRules.count == 2)
  }
}
