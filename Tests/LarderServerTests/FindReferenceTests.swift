import DocumentTestSupport
import TestSupport
import Testing

extension ServerTests {
  /// Compares finds with the reference in Python. The test is skipped if there is no `python3`.
  @Suite(.enabled(if: ReferenceBatch.canBeAnswered)) struct FindReferenceTests {
    /// For a thorough run, set `LARDER_SEEDS` to the number of seeds. Each compares about 800 replies.
    @Test func `on every engine, finds agree with the reference, however they are served`() throws {
      var comparison = FindComparison()
      for seed in SeededGenerator.seeds(1) { try comparison.run(seed: seed) }
      print(comparison)
      #expect(comparison.counts.count == 3 && comparison.matchCount > comparison.pairCount / 10, "\(comparison)")
    }
  }
}
