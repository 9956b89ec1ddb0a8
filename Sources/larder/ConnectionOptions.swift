import ArgumentParser
import Glibc
import Larder
import LarderTLS
import Platform

/// The server's address and the timeout. These options can precede or follow the command's name.
struct ConnectionOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      The server's address, unix:/path/to.sock, tcp:HOST:PORT or tls:HOST:PORT, or those of servers that share stores, \
      separated by commas. (default: that of the profile, else LARDER_SERVER, else a local server)
      """, valueName: "address"),
    transform: { try ServerList($0) })
  private var server: ServerList?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      A server and how to connect to it, under a name in ~/.config/larder/profiles.yaml. (default: LARDER_PROFILE, else \
      the profile "default", if there is one and nothing names a server)
      """, valueName: "name"))
  private var profile: String?

  @Option(
    name: .customLong("tls-ca"), parsing: .unconditional,
    help: ArgumentHelp(
      """
      The authorities that may have issued the server's certificate, at a tls: address. (default: LARDER_TLS_CA, else \
      those that the system trusts)
      """, valueName: "pem-file"),
    completion: .file(extensions: ["pem"]))
  private var authorities: String?

  @Option(
    name: .customLong("tls-cert"), parsing: .unconditional,
    help: ArgumentHelp(
      "The certificate to show the server, with those of its issuers. (default: LARDER_TLS_CERT, else none)",
      valueName: "pem-file"),
    completion: .file(extensions: ["pem"]))
  private var certificate: String?

  @Option(
    name: .customLong("tls-key"), parsing: .unconditional,
    help: ArgumentHelp("The private key of the certificate. (default: LARDER_TLS_KEY)", valueName: "pem-file"),
    completion: .file(extensions: ["pem"]))
  private var key: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How long to wait for each reply, such as 500ms, 5s, 2m or 1h. (default: 5s)", valueName: "time"),
    transform: { try DurationArgument($0) })
  private var timeout: DurationArgument?

  /// Returns the console's client in a console, unless the command names another server; a new client otherwise.
  func client() throws -> LarderClient {
    guard let session = ConsoleSession.current, profile == nil, server == nil || server == session.access.servers else {
      let access = try access()
      let client = try access.client()
      if let address = access.servers.onlyAddress { ServerProbe.watch(client, at: address) }
      return client
    }
    return session.client.with(timeout: timeout?.duration ?? session.access.timeout)
  }

  /// - Throws: `CommandFailure` if no address is given, and none of the local sockets has a server.
  func servers() throws -> ServerList {
    try server ?? chosenProfile().server ?? Self.environmentServers() ?? ServerList(ServerSearch.find())
  }

  /// Returns how to connect to the server. Flags come before the profile, and the profile before the environment.
  /// - Parameter servers: The server's address; nil for that of `servers()`.
  func access(to servers: ServerList? = nil) throws -> ServerAccess {
    try access(to: servers ?? self.servers(), chosenProfile())
  }

  /// Returns how to connect to another server than that of the command. The profile of that one, with its token, does not
  /// apply.
  /// - Parameters:
  ///   - servers: The other server's address; nil for that of the profile.
  ///   - name: The other server's profile; nil for none.
  func access(toOther servers: ServerList?, profile name: String?) throws -> ServerAccess {
    let profile = try name.map(Self.profile) ?? Profile()
    guard let servers = servers ?? profile.server else {
      throw CommandFailure(.usage, "the profile \(name ?? "") names no server")
    }
    return try access(to: servers, profile)
  }

  private func access(to servers: ServerList, _ profile: Profile) throws -> ServerAccess {
    let flags = [("--tls-ca", authorities), ("--tls-cert", certificate), ("--tls-key", key)]
    if let (flag, _) = flags.first(where: { $0.1 != nil }), !servers.addresses.contains(where: \.isEncrypted) {
      throw CommandFailure(.usage, "\(flag) is for addresses with TLS, as in tls:HOST:PORT; this one is \(servers)")
    }
    return ServerAccess(
      servers: servers, tls: try tls(profile), token: try Self.token(profile),
      timeout: timeout?.duration ?? profile.timeout ?? .seconds(5))
  }

  private static func profile(named name: String) throws -> Profile {
    if let profile = try Profile.named(name) { return profile }
    throw CommandFailure(.usage, "\(Profile.defaultPath) has no profile \(name)")
  }

  /// Returns the profile to use; an empty one if there is none.
  private func chosenProfile() throws -> Profile {
    if let name = profile ?? environment("LARDER_PROFILE") { return try Self.profile(named: name) }
    guard server == nil, environment("LARDER_SERVER") == nil else { return Profile() }
    return try Profile.named(Profile.defaultName) ?? Profile()
  }

  private func tls(_ profile: Profile) throws -> ClientTLS {
    var tls = ClientTLS.system
    if let file = authorities ?? profile.authorities ?? environment("LARDER_TLS_CA") {
      tls.trust = .authorities(file: file)
    }
    let file = certificate ?? profile.certificate ?? environment("LARDER_TLS_CERT")
    switch (file, key ?? profile.key ?? environment("LARDER_TLS_KEY")) {
    case (let file?, let keyFile?): tls.certificate = ClientTLS.Certificate(file: file, keyFile: keyFile)
    case (nil, nil): break
    case (_?, nil): throw CommandFailure(.usage, "--tls-cert needs its private key: add --tls-key")
    case (nil, _?): throw CommandFailure(.usage, "--tls-key needs its certificate: add --tls-cert")
    }
    return tls
  }

  private static func environmentServers() throws -> ServerList? {
    guard let text = environment("LARDER_SERVER") else { return nil }
    do { return try ServerList(text) } catch { throw CommandFailure(.usage, "LARDER_SERVER: \(error)") }
  }

  /// Returns the token of the profile, the one in the file that LARDER_TOKEN_FILE names, or the one in LARDER_TOKEN; nil for
  /// none. It is never an argument, which all users of the machine could see.
  private static func token(_ profile: Profile) throws -> String? {
    if let path = profile.tokenFile ?? environment("LARDER_TOKEN_FILE") {
      do { return try readSecretFile(path) } catch { throw CommandFailure(.usage, "\(path): \(error.reason)") }
    }
    return environment("LARDER_TOKEN")
  }
}

/// Completes names of stores in a shell, from the server that the command would use. Completes nothing if the server
/// does not respond.
enum StoreNameCompletion {
  /// Longer than a local server needs, but too short for a person to notice.
  private static let timeout = Duration.milliseconds(300)

  @Sendable
  static func names(_ words: [String], _ index: Int, _ prefix: String) async -> [String] {
    guard let client = try? client(for: words), let stores = try? await client.stores() else { return [] }
    return stores.map(\.name).filter { $0.hasPrefix(prefix) }
  }

  private static func client(for words: [String]) throws -> LarderClient {
    if let session = ConsoleSession.current { return session.client.with(timeout: timeout) }
    return try connection(in: words).access().client().with(timeout: timeout)
  }

  /// Returns the options with which a command that is being typed connects.
  private static func connection(in words: [String]) throws -> ConnectionOptions {
    let names = ["--server", "--profile", "--tls-ca", "--tls-cert", "--tls-key"]
    var options: [String] = []
    for (word, next) in zip(words, words.dropFirst() + [""]) {
      if names.contains(word) { options += [word, next] }
      if names.contains(where: { word.hasPrefix($0 + "=") }) { options.append(word) }
    }
    return try ConnectionOptions.parse(options)
  }
}
