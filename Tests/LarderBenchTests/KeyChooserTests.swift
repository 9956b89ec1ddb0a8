import Testing

@testable import larder_bench

@Suite struct KeyChooserTests {
  @Test func `Uniform keys are equally likely`() {
    let counts = draw(.uniform, keys: 100, count: 100_000)
    #expect(counts.allSatisfy { (800...1_200).contains($0) })
  }

  @Test func `Zipf ranks have the expected frequencies`() {
    let count = 200_000
    let zipf = Zipf(count: 1_000)
    var random = Random(seed: 5)
    var counts = Array(repeating: 0, count: 1_000)
    for _ in 0..<count { counts[Int(zipf.draw(&random))] += 1 }
    let first = Double(count) / Zipf.zeta(1_000)
    #expect(abs(Double(counts[0]) / first - 1) < 0.05)
    #expect(counts[0] > counts[1] && counts[1] > counts[10] && counts[10] > counts[500])
    #expect(counts[999] > 0)
  }

  @Test func `The approximate sum of many ranks continues the exact one`() {
    let exact = Zipf.zeta(1_000_000)
    let more = Zipf.zeta(1_000_001)
    #expect(more > exact && more - exact < 2e-6)
  }

  @Test func `Zipf keys are few and scattered`() {
    let counts = draw(.zipf, keys: 10_000, count: 100_000)
    let hottest = counts.indices.sorted { counts[$0] > counts[$1] }.prefix(100)
    #expect(hottest.reduce(0) { $0 + counts[$1] } > 40_000)
    #expect(hottest.contains { $0 > 5_000 } && hottest.contains { $0 < 5_000 })
  }

  @Test(arguments: Distribution.allCases) func `The same seed draws the same keys`(distribution: Distribution) {
    var (one, other) = (
      KeyChooser(distribution, keys: 500, seed: 9), KeyChooser(distribution, keys: 500, seed: 9)
    )
    for _ in 0..<1_000 { #expect(one.next() == other.next()) }
  }

  @Test func `A single key is always drawn`() {
    for distribution in Distribution.allCases {
      var chooser = KeyChooser(distribution, keys: 1, seed: 1)
      for _ in 0..<100 { #expect(chooser.next() == 0) }
    }
  }

  @Test func `Threads insert distinct keys`() {
    var choosers = (0..<3).map { KeyChooser(.latest, keys: 10, seed: 1, thread: $0, threads: 3) }
    var keys: Set<UInt64> = []
    for _ in 0..<20 {
      for index in choosers.indices { keys.insert(choosers[index].insert()) }
    }
    #expect(keys == Set(10..<70))
  }

  @Test func `The latest keys have been acknowledged`() {
    var chooser = KeyChooser(.latest, keys: 1_000, seed: 1, unansweredInserts: 5)
    for _ in 0..<100 { _ = chooser.insert() }
    var newest = 0
    for _ in 0..<10_000 {
      let key = chooser.next()
      #expect(key < 1_095)
      if key >= 1_000 { newest += 1 }
    }
    #expect(newest > 5_000)
  }

  private func draw(_ distribution: Distribution, keys: Int, count: Int) -> [Int] {
    var chooser = KeyChooser(distribution, keys: keys, seed: 11)
    var counts = Array(repeating: 0, count: keys)
    for _ in 0..<count { counts[Int(chooser.next())] += 1 }
    return counts
  }
}
