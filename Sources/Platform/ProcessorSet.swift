import CLinux

/// Processors by their numbers, as the scheduler has them; the first 1,024.
package struct ProcessorSet: Equatable, Sendable {
  private static let wordCount = 16
  package let numbers: [Int]

  package init(_ numbers: [Int]) {
    precondition(numbers.allSatisfy { (0..<Self.wordCount * 64).contains($0) })
    self.numbers = numbers.sorted()
  }

  /// Those that the calling thread may run on.
  package static func ofThread() throws(SystemError) -> ProcessorSet {
    var mask = Array(repeating: 0 as UInt, count: wordCount)
    try system("sched_getaffinity") { unsafe Int32(get_affinity_of_thread(&mask, wordCount * 8)) }
    return ProcessorSet((0..<wordCount * 64).filter { mask[$0 / 64] >> ($0 % 64) & 1 != 0 })
  }

  /// Has the calling thread run on these only, and with it the threads and processes that it makes from now on.
  package func confineThread() throws(SystemError) {
    var mask = Array(repeating: 0 as UInt, count: Self.wordCount)
    for number in numbers { mask[number / 64] |= 1 << (number % 64) }
    try system("sched_setaffinity") { unsafe Int32(set_affinity_of_thread(mask, Self.wordCount * 8)) }
  }
}
