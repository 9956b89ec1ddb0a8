/// Suggestions for misspelled words.
package enum SpellingSuggestion {
  /// Returns the candidate nearest to a word, if at most a third of its letters are wrong, missing, superfluous or
  /// transposed. Otherwise returns the first candidate that begins with the word, if there is one.
  package static func nearest(to word: String, of candidates: [String]) -> String? {
    guard word.count <= 64 else { return nil }
    let near = candidates.map { (distance: distance(Array(word.lowercased()), Array($0.lowercased())), name: $0) }
    guard let best = near.min(by: { $0.distance < $1.distance }), best.distance <= max(1, best.name.count / 3) else {
      return candidates.filter { !word.isEmpty && $0.hasPrefix(word) }.first
    }
    return best.name
  }

  /// Returns the Damerau–Levenshtein distance of two words, with transpositions of adjacent letters.
  private static func distance(_ one: [Character], _ other: [Character]) -> Int {
    var rows = [Array(0...other.count)]
    for (i, letter) in one.enumerated() {
      var row = [i + 1]
      for (j, otherLetter) in other.enumerated() {
        var best = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (letter == otherLetter ? 0 : 1))
        if i > 0, j > 0, letter == other[j - 1], one[i - 1] == otherLetter { best = min(best, rows[i - 1][j - 1] + 1) }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[one.count][other.count]
  }
}
