import ArgumentParser
import LarderService

/// `larderd config`: looks at a configuration without serving.
struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config", abstract: "Checks a configuration, and shows what it comes to.",
    subcommands: [Check.self, Show.self])

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Checks a configuration file, together with the environment.",
      discussion:
        "Exit status 78 stands for a configuration that can't be used; everything that is wrong with it is told.")

    @Argument(help: "The file.", completion: .file(extensions: ["yaml"]))
    var file = "/etc/larder/larderd.yaml"

    @OptionGroup var options: ServerOptions

    func run() throws {
      var source = options.source
      source.path = options.config ?? file
      _ = try source.readOrExit()
      print("\(source.path ?? file) is good.")
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Shows every setting with its value and where that comes from.",
      discussion: "Flags go before the environment, that before the file, and that before the defaults.")

    @OptionGroup var options: ServerOptions

    func run() throws {
      print(try options.source.readOrExit(), terminator: "")
    }
  }
}
