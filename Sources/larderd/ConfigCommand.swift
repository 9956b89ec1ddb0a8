import ArgumentParser
import LarderService
import Platform

/// The command `larderd config`, which examines a configuration without serving.
struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config", abstract: "Checks a configuration, or shows the resulting settings.",
    subcommands: [Check.self, Show.self])

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Checks a configuration file together with the environment.",
      discussion: """
        Reports every problem with its line, including those in files of certificates and tokens. If there is one, the exit status is 78. What depends on the \
        machine at the \
        start, such as a socket's folder, is not checked; access rules that need a socket from systemd are noted.
        """)

    @Argument(help: "The file.", completion: .file(extensions: ["yaml"]))
    private var file = "/etc/larder/larderd.yaml"

    @OptionGroup private var options: ServerOptions

    func run() throws {
      let path = options.config ?? file
      let loader = options.loader(path: path)
      let settings = try loader.loadOrExit()
      try loader.orExit { () throws(SettingsError) in try settings.checkFiles() }
      for requirement in settings.requirements { logLine("larderd: note: \(requirement)") }
      try StandardOutput.write("\(path) is valid.\n")
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Shows every setting with its value and the source of the value.",
      discussion:
        "Flags override the environment, which overrides the configuration file, which overrides the defaults.")

    @OptionGroup private var options: ServerOptions

    func run() throws {
      try StandardOutput.write("\(try options.loader().loadOrExit())")
    }
  }
}
