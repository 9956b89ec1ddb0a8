import ArgumentParser

/// The completion scripts of the argument parser, with what they lack.
enum CompletionScript {
  /// Returns the script that a command line requests; nil if it requests none, or one that the parser prints.
  static func requested(by words: [String]) -> String? {
    guard let first = words.first, first.hasPrefix("--generate-completion-script") else { return nil }
    let words = words.flatMap { $0.split(separator: "=", maxSplits: 1) }
    guard words.count == 2, words[0] == "--generate-completion-script" else { return nil }
    switch words[1] {
    case "bash": return bash
    case "zsh": return zsh
    default: return nil
    }
  }

  /// The script for zsh, with options that can have an equals sign before their value.
  private static var zsh: String {
    let lines = LarderCommand.completionScript(for: .zsh).split(separator: "\n", omittingEmptySubsequences: false)
    return lines.map { line in
      guard line.hasPrefix("        '--"), line.contains("]:"), let end = line.firstIndex(of: "[") else {
        return String(line)
      }
      return line[..<end] + "=" + line[end...]
    }.joined(separator: "\n")
  }

  /// The script for bash, called with whole words.
  ///
  /// bash also splits words at the characters of COMP_WORDBREAKS, such as the equals sign and the colon of
  /// `log?durability=interval:1s`, and replaces only the last part.
  private static var bash: String {
    LarderCommand.completionScript(for: .bash)
      .replacing("complete -o filenames -F _larder larder", with: joiningFunction)
  }

  private static let joiningFunction = #"""
    # Joins the parts into which bash splits words at = and :, completes the word, and removes from the candidates the
    # parts that bash keeps.
    _larder_joined() {
        local -a parts=("${COMP_WORDS[@]}") words=()
        local -i index current=0
        local part rest="${COMP_LINE}" before kept
        for index in "${!parts[@]}"; do
            part="${parts[index]}"
            before="${rest}"
            rest="${rest#"${rest%%[![:space:]]*}"}"
            if ((index == 0)) || [[ "${before}" != "${rest}" ]]; then
                words+=("${part}")
                kept=''
            elif [[ "${part}" == [=:]* ]]; then
                words[-1]+="${part}"
                kept="${words[-1]}"
            else
                kept="${words[-1]}"
                words[-1]+="${part}"
            fi
            rest="${rest#"${part}"}"
            if ((index == COMP_CWORD)); then
                current="${#words[@]}"-1
                local -r kept_of_current="${kept//\\/}" word="${words[-1]//\\/}"
            fi
        done
        local -a COMP_WORDS=("${words[@]}")
        local -i COMP_CWORD="${current}"
        _larder "${1}" "${word#[\'\"]}" "${words[current - 1]}"
        COMPREPLY=("${COMPREPLY[@]#"${kept_of_current}"}")
    }

    complete -o filenames -F _larder_joined larder
    """#
}
