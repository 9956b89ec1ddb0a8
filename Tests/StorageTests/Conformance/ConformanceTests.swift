import TestSupport
import Testing

@testable import Storage

/// The contract of every engine: a store behaves like a dictionary, and still does after it is reopened.
@Suite struct ConformanceTests {
  @Test(arguments: [EngineKind].known)
  func `random operations, snapshots and restarts leave a store equal to a dictionary`(_ engine: EngineKind)
    throws
  {
    // The simulated disk visits all its names whenever a folder is listed.
    try Self.run(engine, keyCount: engine == .directory ? 300 : 1_500)
  }

  @Test(arguments: [EngineKind].known)
  func `random operations on a few keys, most of which overwrite`(_ engine: EngineKind) throws {
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
