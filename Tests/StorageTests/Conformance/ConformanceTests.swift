import SimulatedDisk
import Testing

@testable import Storage

/// What every engine is held to: whatever is done to a store, it is like a dictionary, and is so again when it was opened anew.
@Suite struct ConformanceTests {
  @Test(arguments: EngineKind.allCases)
  func `random work leaves a store and a dictionary alike, snapshots and restarts included`(_ engine: EngineKind) throws
  {
    // The simulated disk goes through all its names at each look at a folder.
    try Self.run(engine, keyCount: engine == .directory ? 300 : 1_500)
  }

  @Test(arguments: EngineKind.allCases)
  func `random work on few keys, so that most of it overwrites`(_ engine: EngineKind) throws {
    try Self.run(engine, keyCount: 60)
  }

  private static func run(_ engine: EngineKind, keyCount: Int, _ test: String = #function) throws {
    for seed in SeededGenerator.seeds(1, "\(test) \(engine)") {
      var run = try ConformanceRun(engine, seed: seed, keyCount: keyCount)
      for step in 0..<(SeededGenerator.isThorough ? 3_000 : 1_000) { try run.step(step) }
      try run.finish()
    }
  }
}
