import Testing

@testable import DataSources

@Suite struct KeyTurnsTests {
  @Test func `bodies for a common key never overlap`() async {
    let turns = KeyTurns()
    let keys = ["a", "b", "c"].map { EntryKey($0) }
    let scopes: [KeyScope] = keys.map { .key($0) } + [.keys([keys[2], keys[0]]), .keys([keys[0], keys[1]]), .all]
    let running = LockedValue([Int](repeating: 0, count: keys.count))
    await withTaskGroup { group in
      for round in 0..<600 {
        let number = round % scopes.count
        let affected: [Int] = number < 3 ? [number] : number == 3 ? [0, 2] : number == 4 ? [0, 1] : [0, 1, 2]
        group.addTask {
          await turns.run(scopes[number]) {
            running.withLock { counts in for key in affected { counts[key] += 1 } }
            await Task.yield()
            running.withLock { counts in
              for key in affected {
                #expect(counts[key] == 1)
                counts[key] -= 1
              }
            }
          }
        }
      }
    }
  }
}
