import Foundation
import Testing

/// Profiles, which name servers for `larder`.
struct ProfileTests {
  private let server: RunningServer
  private let home: TemporaryFolder

  init() throws {
    server = try RunningServer()
    home = try TemporaryFolder()
    try FileManager.default.createDirectory(at: home.file("larder"), withIntermediateDirectories: true)
  }

  private func write(_ text: String, to name: String, _ mode: mode_t) throws {
    try Data(text.utf8).write(to: home.file(name))
    _ = unsafe chmod(home.file(name).path, mode)
  }

  /// Runs a command with a file of profiles.
  private func larder(
    _ arguments: [String], _ profiles: String, mode: mode_t = 0o644, environment: [String: String] = [:]
  ) throws -> Command {
    try write(profiles, to: "larder/profiles.yaml", mode)
    return try Command.larder(
      arguments, environment: environment.merging(["XDG_CONFIG_HOME": home.path, "HOME": home.path]) { $1 })
  }

  @Test func `flags come before the profile, and a profile that is named before the environment`() throws {
    let profiles = "default: {server: \(server.address)}\nother: {server: unix:/nowhere, timeout: 100ms}\n"
    #expect(try larder(["ping"], profiles).status == 0)
    #expect(try larder(["ping", "--profile", "other"], profiles).status == 4)
    #expect(try larder(["ping"], profiles, environment: ["LARDER_PROFILE": "other"]).status == 4)
    #expect(try larder(["ping", "--profile", "other", "--server", server.address], profiles).status == 0)
    // The profile that nobody has named comes last.
    let elsewhere = ["LARDER_SERVER": "unix:/nowhere"]
    #expect(try larder(["ping"], profiles, environment: elsewhere).status == 4)
    #expect(try larder(["ping", "--profile", "default"], profiles, environment: elsewhere).status == 0)
    #expect(try larder(["ping", "--server", server.address], "default: {server: unix:/nowhere}").status == 0)
  }

  @Test func `the files of a profile are relative to its folder, or to the user's`() throws {
    for (file, path) in [
      ("job.token", home.file("larder/job.token").path), ("~/job.token", home.file("job.token").path),
      ("/none", "/none"),
    ] {
      let result = try larder(["ping"], "default: {server: \(server.address), token-file: '\(file)'}")
      #expect(result.status == 2 && result.error.contains("larder: \(path): "), "\(result.error)")
    }
    try write("ldr_x", to: "larder/job.token", 0o644)
    let profile = "default: {server: \(server.address), token-file: job.token}"
    #expect(try larder(["ping"], profile).error.contains("chmod 600"))
    try write("ldr_x", to: "larder/job.token", 0o600)
    // The server doesn't know the token.
    #expect(try larder(["ping"], profile).status == 3)
  }

  @Test(
    arguments: [
      ("- a", "does not contain profiles"), ("default: 7", "line 1: the profile default has no members"),
      ("default:\n  sever: a", "line 2: a profile has no sever; did you mean server?"),
      ("default: {server: nowhere}", "line 1: "), ("default: {timeout: 7}", "line 1: "),
      ("default: {server: 'tls:a:1', tls-cert: a}", "--tls-cert needs its private key"),
      ("default: {server: [a]}", "is NAME: TEXT"),
      ("default: {", "profiles.yaml, line "),
    ])
  func `a file that is not valid is an error that says where`(text: String, reason: String) throws {
    let result = try larder(["ping"], text)
    #expect(result.status == 2 && result.error.contains(reason), "\(result.error)")
  }

  @Test func `a file that others could have written is refused, and a profile that there is not`() throws {
    let profiles = "default: {server: \(server.address)}"
    for mode: mode_t in [0o664, 0o646] {
      let result = try larder(["ping"], profiles, mode: mode)
      #expect(result.status == 2 && result.error.contains("run: chmod go-w"), "\(result.error)")
    }
    let result = try larder(["ping", "--profile", "prod"], profiles)
    #expect(result.status == 2 && result.error.contains("profiles.yaml has no profile prod"))
    #expect(try larder(["ping"], "").status == 4)
  }
}
