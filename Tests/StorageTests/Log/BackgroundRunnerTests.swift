import Dispatch
import Glibc
import Platform
import Synchronization
import Testing

@testable import Storage

struct BackgroundRunnerTests {
  @Test(arguments: [1 << 30, .max])
  func `work runs in order, and leaves the processor to others if its rate is limited`(bytesPerSecond: Int) {
    let runner = BackgroundRunner()
    let steps = Lock<[Int]>([])
    let niceness = Lock<[Int32]>([])
    let isDone = DispatchSemaphore(value: 0)
    for number in 0..<3 {
      let rest = Atomic(3)
      runner.run(bytesPerSecond: bytesPerSecond) {
        steps.withLock { $0.append(number) }
        niceness.withLock { $0.append(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)) }
        if rest.subtract(1, ordering: .relaxed).newValue > 0 { return 1 }
        if number == 2 { isDone.signal() }
        return nil
      }
    }
    isDone.wait()
    runner.stop()
    #expect(steps.withLock { $0 } == [0, 0, 0, 1, 1, 1, 2, 2, 2])
    let isNice = bytesPerSecond < .max || getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) >= 10
    #expect(niceness.withLock { $0 }.allSatisfy { ($0 >= 10) == isNice })
  }

  @Test func `a stopped background runner runs nothing`() {
    let runner = BackgroundRunner()
    let hasBegun = DispatchSemaphore(value: 0)
    let count = Atomic(0)
    runner.run(bytesPerSecond: 1 << 20) {
      hasBegun.signal()
      count.add(1, ordering: .relaxed)
      return 1
    }
    hasBegun.wait()
    runner.stop()
    let final = count.load(ordering: .relaxed)
    runner.run(bytesPerSecond: .max) {
      count.add(1, ordering: .relaxed)
      return nil
    }
    runner.stop()
    #expect(count.load(ordering: .relaxed) == final)
  }
}
