import Documents
import TestSupport
import Testing

/// Compares plans with scans.
@Suite struct `Plans and scans` {
  /// For a thorough run, set `LARDER_SEEDS` to the number of seeds. Each has about 2,000 pairs of a query and a plan.
  @Test func `a plan and a scan find the same documents`() throws {
    var comparison = PlanComparison { Issue.record("\($0)") }
    for seed in SeededGenerator.seeds(1) { try comparison.run(seed: seed) }
    print(comparison)
    #expect(comparison.orderedCount > 0 && comparison.exactCount > 0 && comparison.groupedCount > 0)
    // Rare: one seed may have none.
    #expect(comparison.fallbackCount > 0 || comparison.pairCount < 20_000)
    #expect(comparison.kinds.count >= 6)
  }
}
