import DataSourceFutures
import DataSources
import Foundation
import Testing

@Suite struct FutureTests {
  struct Broken: Error, Equatable {}
  struct Other: Error, Equatable {}

  @Test func `the first set wins`() async throws {
    let answers = Recorder<Bool>()
    let future = Future<Int> { resolver in
      answers.add(resolver.set(1))
      answers.add(resolver.set(2))
      answers.add(resolver.set(Broken()))
    }
    #expect(answers.events == [true, false, false])
    #expect(try future.result?.get() == 1)
    #expect(try await future.value == 1)
  }

  @Test func `subscribers get the result once each, in order`() async throws {
    let events = Recorder<String>()
    let (future, resolver) = pending(Int.self)
    future.then { events.add("a\($0)") }.fail { _ in events.add("never") }.onCompletion { events.add("b") }
    #expect(events.events.isEmpty && future.result == nil)
    resolver.set(5)
    future.then { events.add("c\($0)") }
    #expect(events.events == ["a5", "b", "c5"])
  }

  @Test func `fail and onCompletion get errors`() {
    let events = Recorder<String>()
    Future<Int>(failing: Broken()).then { _ in events.add("never") }.fail { events.add("\($0)") }
      .onCompletion { events.add("done") }
    #expect(events.events == ["Broken()", "done"])
  }

  @Test func `a subscriber can subscribe to the same future`() {
    let events = Recorder<Int>()
    let (future, resolver) = pending(Int.self)
    future.then { _ in future.then { events.add($0) } }
    resolver.set(3)
    #expect(events.events == [3])
  }

  @Test func `a resolver that is deallocated fails its future`() async {
    let future = Future<Int> { _ in }
    #expect(await failure { try await future.value } == .failed)
  }

  @Test func `map, flatMap and mapError transform`() async throws {
    #expect(try await Future(2).map { $0 * 2 }.value == 4)
    #expect(try await Future(2).flatMap { Future("\($0)") }.value == "2")
    await #expect(throws: Broken()) { try await Future(2).map { _ throws -> Int in throw Broken() }.value }
    await #expect(throws: Broken()) { try await Future(2).flatMap { _ throws -> Future<Int> in throw Broken() }.value }
    await #expect(throws: Other()) { try await Future<Int>(failing: Broken()).mapError { _ in Other() }.value }
  }

  @Test func `recover replaces the matching errors`() async throws {
    let broken = Future<Int>(failing: Broken())
    #expect(try await broken.recover { _ in Future(1) }.value == 1)
    #expect(try await broken.recover(if: Broken.self) { _ in Future(2) }.value == 2)
    #expect(try await broken.recover(if: { $0 is Broken }, { _ in Future(3) }).value == 3)
    await #expect(throws: Broken()) { try await broken.recover(if: Other.self) { _ in Future(2) }.value }
    await #expect(throws: Other()) { try await broken.recover { _ in throw Other() }.value }
    #expect(try await Future(7).recover { _ in Future(1) }.value == 7)
  }

  @Test func `filter rejects by throwing`() async throws {
    let check: @Sendable (Int) throws -> Void = { if $0 > 3 { throw Broken() } }
    #expect(try await Future(3).filter(check).value == 3)
    await #expect(throws: Broken()) { try await Future(4).filter(check).value }
  }

  @Test func `zip returns all values, or the first error without waiting`() async throws {
    #expect(try await Future(1).zip(Future("a")).value == (1, "a"))
    #expect(try await Future(1).zip(Future("a"), Future(true)).value == (1, "a", true))
    let (never, resolver) = pending(Int.self)
    await #expect(throws: Broken()) { try await never.zip(Future<Int>(failing: Broken())).value }
    await #expect(throws: Broken()) { try await Future<Int>(failing: Broken()).zip(never).value }
    resolver.set(0)
  }

  @Test func `batch keeps the order, and fails with the first error`() async throws {
    let (first, one) = pending(Int.self)
    let (second, two) = pending(Int.self)
    let both = Future.batch(first, second)
    two.set(2)
    #expect(both.result == nil)
    one.set(1)
    #expect(try await both.value == [1, 2])
    #expect(try await Future<Int>.batch([]).value == [])
    let (never, resolver) = pending(Int.self)
    await #expect(throws: Broken()) { try await Future.batch([never, Future(failing: Broken())]).value }
    resolver.set(0)
  }

  @Test func `unwrap fails for nil`() async throws {
    #expect(try await Future<Int?>(1).unwrap().value == 1)
    #expect(await failure { try await Future<Int?>(nil).unwrap().value } == .notFound)
  }

  @Test func `an asynchronous operation resolves a future`() async throws {
    #expect(try await Future { try await Future(4).value }.value == 4)
    await #expect(throws: Broken()) { try await Future<Int> { throw Broken() }.value }
  }

  @Test func `a cancelled waiter stops waiting, and the future continues`() async throws {
    let (future, resolver) = pending(Int.self)
    let waiter = Task { try await future.value }
    waiter.cancel()
    await #expect(throws: CancellationError.self) { try await waiter.value }
    #expect(future.result == nil)
    resolver.set(9)
    #expect(try await future.value == 9)
  }

  @Test func `60: a future needs no run loop, and resolves once`() async throws {
    for _ in 0..<50 {
      let (future, resolver) = pending(Int.self)
      let calls = Recorder<Int>()
      future.then { calls.add($0) }
      let winners = await withTaskGroup { group in
        for number in 0..<8 { group.addTask { resolver.set(number) } }
        return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(winners == 1)
      #expect(calls.events == [try await future.value])
    }
  }

  /// Returns a pending future and its resolver.
  func pending<T: Sendable>(_ type: T.Type) -> (Future<T>, FutureResolver<T>) {
    var resolver: FutureResolver<T>?
    let future = Future<T> { resolver = $0 }
    return (future, resolver!)
  }
}
