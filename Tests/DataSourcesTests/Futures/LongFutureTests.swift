import DataSourceFutures
import DataSources
import Foundation
import Testing

/// Chains of 100,000 futures don't overflow the stack, whichever end comes first. (Where it makes no difference, the
/// chains are shorter: if calls were nested, 10,000 of them would overflow the stack, too.)
///
/// The tests run on threads of the cooperative pool, whose stacks are small.
@Suite struct LongFutureTests {
  /// A way to add a future to a chain, which adds one to the value.
  enum Link: CaseIterable, Sendable {
    case map, flatMap, flatMapOfLater, recover, then, chain, set, zip, resolver

    func appended(to future: Future<Int>) -> Future<Int> {
      switch self {
      case .map: future.map { $0 + 1 }
      case .flatMap: future.flatMap { Future($0 + 1) }
      case .flatMapOfLater: future.flatMap { Future($0).map { $0 + 1 } }
      case .recover: future.recover { Future($0) }.map { $0 + 1 }
      case .then: future.then { _ in }.fail { _ in }.map { $0 + 1 }
      case .chain: future.chain(future.map { $0 + 1 })
      case .set: Future(future).map { $0 + 1 }
      case .zip: (future + Future(1)).collapse { $0 + $1 }
      case .resolver:
        Future { resolver in
          future.then { resolver.set($0 + 1) }.fail { resolver.set($0) }
        }
      }
    }

    func chain(of count: Int = 10_000, from first: Future<Int>) -> Future<Int> {
      var last = first
      for _ in 0..<count { last = appended(to: last) }
      return last
    }
  }

  @Test(arguments: [Link.map, .flatMap, .recover])
  func `100,000 futures can be chained`(_ link: Link) async throws {
    let first = Future<Int>()
    let last = link.chain(of: 100_000, from: first)
    first.set(0)
    #expect(try await last.value == 100_000)
  }

  @Test(arguments: Link.allCases)
  func `a chain can be resolved after it was made`(_ link: Link) async throws {
    let first = Future<Int>()
    let last = link.chain(from: first)
    #expect(last.currentResult == nil)
    first.set(0)
    #expect(try await last.value == 10_000)
  }

  @Test(arguments: Link.allCases)
  func `a chain can be made after its beginning was resolved`(_ link: Link) async throws {
    #expect(try await link.chain(from: Future(0)).value == 10_000)
  }

  @Test(arguments: [Link.map, .flatMap, .zip, .resolver])
  func `a chain passes an error on`(_ link: Link) async throws {
    let first = Future<Int>()
    let last = link.chain(from: first)
    first.set(FutureTests.Broken())
    await #expect(throws: FutureTests.Broken()) { try await last.value }
  }

  @Test(arguments: [Link.map, .flatMap, .zip, .resolver])
  func `a chain that nobody resolves can be deallocated, and fails`(_ link: Link) async throws {
    var first: Future<Int>? = Future()
    let last = link.chain(from: first!)
    first = nil
    #expect(await failure { try await last.value } == .failed)
  }

  @Test(arguments: [Link.map, .flatMap, .zip, .resolver])
  func `a chain is freed, from either end`(_ link: Link) {
    weak var first: Future<Int>?
    weak var last: Future<Int>?
    do {
      let beginning = Future<Int>()
      let end = link.chain(from: beginning)
      (first, last) = (beginning, end)
      #expect(first != nil && last != nil)
    }
    #expect(first == nil && last == nil)
  }

  @Test func `a function can call itself in flatMap any number of times`() async throws {
    @Sendable func total(to number: Int, _ sum: Int = 0) -> Future<Int> {
      number == 0 ? Future(sum) : Future(number).flatMap { total(to: $0 - 1, sum + $0) }
    }
    #expect(try await total(to: 10_000).value == 50_005_000)
  }

  @Test func `a function can call itself in then on a source that answers immediately`() async throws {
    let source = InMemoryDataSource<Int>()
    try await source.put(1, forId: "one")
    let done = Future<Int>()
    @Sendable func count(_ sum: Int) {
      guard sum < 10_000 else {
        done.set(sum)
        return
      }
      source.get("one").then { count(sum + $0) }.fail { done.set($0) }
    }
    count(0)
    #expect(try await done.value == 10_000)
  }
}
