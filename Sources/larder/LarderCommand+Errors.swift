import ArgumentParser
import Glibc
import Larder
import Platform

extension LarderCommand {
  /// Says why a command ended, in one line.
  /// - Parameter words: the command line that the error is about.
  static func report(_ error: any Error, words: [String] = []) -> ExitStatus {
    switch error {
    case is OutputClosed: return .done
    case is CancellationError: return complain(CommandFailure(.unreachable, "it was stopped"))
    case let failure as CommandFailure: return complain(failure)
    case let error as LarderError: return complain(CommandFailure(error))
    case let status as ExitCode: return ExitStatus(rawValue: status.rawValue) ?? .usage
    default:
      if exitCode(for: error) != .success { return complain(CommandFailure(.usage, usageMessage(error, words))) }
      // The parser has found something to answer itself, such as -h. It is no success where a key or value was meant.
      if let message = misplacedOptionMessage(words) { return complain(CommandFailure(.usage, message)) }
      var output = Output()
      do { try output.writeLine(fullMessage(for: error)) } catch { return report(error) }
      return .done
    }
  }

  static func logHelp() {
    logLine(helpMessage())
  }

  /// What is wrong with the command line, and where the help is.
  private static func usageMessage(_ error: any Error, _ words: [String]) -> String {
    let message = message(for: error)
    if message.hasPrefix("Missing expected argument"), let better = misplacedOptionMessage(words) { return better }
    let lines = fullMessage(for: error).split(separator: "\n")
    let pointer = lines.last { $0.contains("See '") }?.split(separator: "'") ?? []
    let help = pointer.count > 1 ? pointer[1] : "larder --help"
    let hint = message.hasPrefix("Unknown option") ? dashHint : ""
    return "\(message); \(hint)see '\(help)'"
  }

  private static let dashHint = "put -- before a key or value that begins with a dash, or "

  private static func misplacedOptionMessage(_ words: [String]) -> String? {
    guard let option = CommandLinePosition.misplacedOption(in: words) else { return nil }
    return "Unexpected option '\(option)'; \(dashHint)see '\(CommandLinePosition(after: words).helpCommand)'"
  }

  private static func complain(_ failure: CommandFailure) -> ExitStatus {
    logLine("larder: \(oneLine(failure.message))")
    return failure.status
  }

  /// A text without what would break its line or steer a terminal. It may come from the server, or be the name of a file.
  static func oneLine(_ text: String) -> String {
    var line = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      let isControl = scalar.properties.generalCategory == .control
      if !isControl { line.append(scalar) } else if line.last != " " { line.append(" ") }
    }
    return String(line)
  }

  /// Refuses arguments that are not UTF-8, which Swift would hand on with other characters in them.
  static func checkEncoding() throws(CommandFailure) {
    for index in 0..<Int(CommandLine.argc) {
      guard let argument = unsafe CommandLine.unsafeArgv[index] else { return }
      guard unsafe String(validatingCString: argument) == nil else { continue }
      throw CommandFailure(
        .usage,
        "argument \(index) is not UTF-8, which keys have to be; a value of any bytes can be given on standard input")
    }
  }
}
