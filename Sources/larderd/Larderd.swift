import ArgumentParser
import Basics
import Glibc
import LarderServer
import LarderService
import Platform
import Systemd

/// The command `larderd`: resolves the settings and runs the server until a signal ends it.
@main
struct Larderd: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larderd",
    abstract: "Serves named key-value stores over Unix and TCP sockets.",
    discussion: """
      An ADDRESS is unix:/path/to.sock, tcp:HOST:PORT or tls:HOST:PORT. Sockets that systemd passes need no flag. TCP is \
      neither encrypted nor authenticated: restrict it to loopback, and use TLS for other machines.
      Every flag has a counterpart in the configuration file and in the environment; larderd config show lists them.
      SIGTERM and SIGINT stop the server: it completes the requests it has received and exits with status 0. SIGHUP \
      makes it reload its configuration.

      Example: larderd --listen unix:/run/larder.sock --store sessions=memory
      """,
    version: softwareVersion, subcommands: [ConfigCommand.self])

  @OptionGroup private var options: ServerOptions

  /// The exit status for an invalid command line, as that of `larder`.
  private static let invalidCommandLine: Int32 = 2

  static func main() {
    guard StandardDescriptors.reserve() else { Glibc.exit(invalidCommandLine) }
    do {
      var command = try parseAsRoot(try ProcessArguments.words())
      try command.run()
    } catch { Glibc.exit(report(error)) }
  }

  /// Prints why a command ended, or the text that the parser was asked for, such as the help.
  /// - Returns: The exit status.
  private static func report(_ error: any Error) -> Int32 {
    switch error {
    case let status as ExitCode: return status.rawValue
    case is ProcessArgumentsError, is StandardOutput.WriteError: logLine("larderd: \(error)")
    case _ where exitCode(for: error) == .success:
      do { try StandardOutput.write(fullMessage(for: error) + "\n") } catch { return report(error) }
      return 0
    default: logLine(fullMessage(for: error))
    }
    return invalidCommandLine
  }

  func run() throws {
    ProcessMemory.useOneHeap()
    let loader = options.loader()
    let settings = try loader.loadOrExit()
    let log = EventLog("larderd", level: settings.settings.logLevel)
    do {
      try Daemon(loader, log).run(settings, sockets: ActivationSockets.take())
    } catch {
      log.error("can't start: \(error)")
      ServiceManager.status("can't start: \(error)")
      let isConfiguration =
        error is AccessError || error is ExposureError || error is SecurityError || error is TLSFileError
        || error is TokenFileError
      throw isConfiguration ? SettingsLoader.invalidConfiguration : ExitCode.failure
    }
  }
}
