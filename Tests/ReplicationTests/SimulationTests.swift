import ReplicationTestSupport
import TestSupport
import Testing

struct SimulationTests {
  @Test func `whatever befalls nodes and the database, the store is linearizable`() {
    var (takeovers, warmTakeovers, operations) = (0, 0, 0)
    for seed in SeededGenerator.seeds(300) {
      let simulation = Simulation(seed: seed)
      simulation.run(steps: 150)
      let isCorrect = isLinearizable(simulation.operations)
      #expect(isCorrect, "seed \(seed)")
      takeovers += simulation.takeovers
      warmTakeovers += simulation.warmTakeovers
      operations += simulation.operations.count
    }
    #expect(takeovers > 300 && warmTakeovers > 50 && operations > 3_000, "\(takeovers) \(warmTakeovers) \(operations)")
  }

  @Test(arguments: SimulatedLog.Sabotage.allCases)
  func `each broken rule is noticed`(_ sabotage: SimulatedLog.Sabotage) {
    let isNoticed = (1...20_000 as ClosedRange<UInt64>).contains { seed in
      let simulation = Simulation(seed: seed, sabotage: sabotage)
      simulation.run(steps: 150)
      return !isLinearizable(simulation.operations)
    }
    #expect(isNoticed)
  }

  @Test func `the checker of histories knows right from wrong`() {
    typealias Operation = Simulation.Operation
    func write(_ value: Int, _ start: Int, _ end: Int?) -> Operation {
      Operation(isWrite: true, value: value, start: start, end: end)
    }
    func read(_ value: Int, _ start: Int, _ end: Int) -> Operation {
      Operation(isWrite: false, value: value, start: start, end: end)
    }
    #expect(isLinearizable([write(1, 0, 2), read(1, 3, 4), write(2, 5, 6), read(2, 7, 8)]))
    #expect(isLinearizable([write(1, 0, 9), read(0, 1, 2), read(1, 3, 4)]))
    #expect(isLinearizable([write(1, 0, nil), read(0, 1, 2), read(1, 3, 4)]))
    #expect(isLinearizable([write(1, 0, 1), write(2, 2, nil), read(1, 3, 4)]))
    #expect(!isLinearizable([write(1, 0, 2), write(2, 3, 4), read(1, 5, 6)]))
    #expect(!isLinearizable([write(1, 0, 2), read(0, 3, 4)]))
    #expect(!isLinearizable([read(1, 0, 1), write(1, 2, 3)]))
    #expect(!isLinearizable([write(1, 0, nil), read(1, 1, 2), read(0, 3, 4)]))
    #expect(!isLinearizable([write(1, 0, 1), write(2, 2, 3), read(2, 4, 5), read(1, 6, 7)]))
  }
}
