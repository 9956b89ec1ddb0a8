import ArgumentParser
import Basics
import LarderServer
import LarderService
import Platform
import Systemd

@main
struct Larderd: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larderd",
    abstract: "Serves named key-value stores over Unix and TCP sockets.",
    discussion: """
      An ADDRESS is unix:/path/to.sock or tcp:HOST:PORT. Sockets that systemd passes are used without any flag. TCP has neither \
      encryption nor authentication yet: keep it to loopback.
      What is said by a flag can also be said in a configuration file or in the environment: see larderd config show.
      SIGTERM and SIGINT stop the server: it answers what has reached it and exits with status 0. SIGHUP has it read its \
      configuration anew.

      Example: larderd --listen unix:/run/larder.sock --store sessions=memory
      """,
    version: softwareVersion, subcommands: [ConfigCommand.self])

  @OptionGroup var options: ServerOptions

  func run() throws {
    let source = options.source
    let settings = try source.readOrExit()
    let log = EventLog("larderd", level: settings.settings.logLevel)
    do {
      try Daemon(source, log).run(settings, sockets: ActivationSockets.take())
    } catch {
      log.error("can't start: \(error)")
      ServiceManager.status("can't start: \(error)")
      throw error is AccessError ? SettingsSource.failure : ExitCode.failure
    }
  }
}
