import DataSourceFutures
import DataSources
import Foundation
import Testing

@Suite struct FutureTests {
  struct Broken: Error, Equatable {}
  struct Other: Error, Equatable {}

  @Test func `a future is made of a value, an error, a result or another future`() throws {
    var futures: [Future<Int>] = []
    futures.append(Future<Int>(1))
    futures.append(Future<Int>(.success(1)))
    futures.append(Future<Int>(Future<Int>(1)))
    futures.append(Future<Int>(value: { 1 }))
    futures.append(Future<Int>(future: { Future<Int>(1) }))
    futures.append(Future<Int> { $0.set(1) })
    futures.append(Future<Int> { 1 })
    futures.append(Future<Int> { Future<Int>(1) })
    for future in futures { #expect(try future.currentResult?.get() == 1) }
    var failed: [Future<Int>] = []
    failed.append(Future<Int>(Broken()))
    failed.append(Future<Int>(.failure(Broken())))
    failed.append(Future<Int>(Future<Int>(Broken())))
    failed.append(Future<Int>(value: { throw Broken() }))
    failed.append(Future<Int>(future: { throw Broken() }))
    failed.append(Future<Int> { $0.set(Broken()) })
    failed.append(Future<Int> { _ in throw Broken() })
    failed.append(Future<Int> { Broken() })
    for future in failed { #expect(throws: Broken()) { try future.currentResult?.get() } }
  }

  @Test func `a pending future is set directly, once`() throws {
    let future = Future<Int>()
    #expect(future.currentResult == nil)
    #expect(future.set(1))
    #expect(!future.set(2) && !future.set(Broken()) && !future.set(value: 3, error: nil))
    #expect(try future.currentResult?.get() == 1)
    let done = Future<Void>()
    #expect(done.set() && !done.set())
  }

  @Test func `set(value,error) prefers the error, and rejects neither`() throws {
    func result(_ value: Int?, _ error: (any Error)?) -> Future<Int> {
      let future = Future<Int>()
      future.set(value: value, error: error)
      return future
    }
    #expect(try result(1, nil).currentResult?.get() == 1)
    #expect(throws: Broken()) { try result(nil, Broken()).currentResult?.get() }
    #expect(throws: Broken()) { try result(1, Broken()).currentResult?.get() }
    #expect(throws: DataSourceError.illegalArgument) { try result(nil, nil).currentResult?.get() }
  }

  @Test func `a future's state has its value or error`() {
    let future = Future<Int>()
    #expect(future.state == .blank)
    future.then { _ in }
    #expect(future.state == .waitingContent)
    future.set(1)
    #expect(future.state == .sent)
    let other = Future(1)
    #expect(other.state == .waitingThen)
    other.then { _ in }
    #expect(other.state == .sent)
  }

  @Test func `result waits for the future`() async throws {
    let future = Future<Int>()
    let results = try await onThreads(4) {
      future.set(5)
      return try future.result.get()
    }
    #expect(results == [5, 5, 5, 5])
    let later = Future<Int>()
    let waiting = Task { try await onThreads(2) { try later.result.get() } }
    try await Task.sleep(for: .milliseconds(5))
    later.set(6)
    #expect(try await waiting.value == [6, 6])
  }

  @Test func `result in a subscriber delivers this thread's pending results first`() async throws {
    let results = try await onThreads(1) {
      let inner = Recorder<Int>()
      Future(1).then { value in
        let next = Future(value).map { $0 + 1 }.flatMap { Future($0).map { $0 + 1 } }
        if case .success(let value) = blockingResult(of: next) { inner.add(value) }
      }
      return inner.events
    }
    #expect(results == [[3]])
  }

  @Test func `the first result that is set on a future wins`() async throws {
    let answers = Recorder<Bool>()
    let future = Future<Int> { resolver in
      answers.add(resolver.set(1))
      answers.add(resolver.set(2))
      answers.add(resolver.set(Broken()))
    }
    #expect(answers.events == [true, false, false])
    #expect(try future.currentResult?.get() == 1)
    #expect(try await future.value == 1)
  }

  @Test func `subscribers get the result once each, in order`() async throws {
    let events = Recorder<String>()
    let (future, resolver) = pending(Int.self)
    future.then { events.add("a\($0)") }.fail { _ in events.add("never") }.onCompletion { events.add("b") }
    #expect(events.events.isEmpty && future.currentResult == nil)
    resolver.set(5)
    future.then { events.add("c\($0)") }
    #expect(events.events == ["a5", "b", "c5"])
  }

  @Test func `fail and onCompletion get errors`() {
    let events = Recorder<String>()
    Future<Int>(Broken()).then { _ in events.add("never") }.fail { events.add("\($0)") }
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

  @Test func `a future that is deallocated fails its subscribers`() async {
    var future: Future<Int>? = Future()
    let next = future!.map { $0 }
    future = nil
    #expect(await failure { try await next.value } == .failed)
  }

  @Test func `a pending future is freed`() {
    weak var freed: Future<Int>?
    do {
      let future = Future<Int>()
      freed = future
      #expect(freed != nil)
    }
    #expect(freed == nil)
  }

  @Test func `calls to a source that answers immediately keep their order`() async throws {
    let source = InMemoryDataSource<Int>()
    func calls() -> Future<Int> {
      _ = source.putAll([1, 2], forId: "a")
      _ = source.put(3, forId: "a")
      return source.get("a")
    }
    let future = calls()
    #expect(future.state == .waitingThen)
    #expect(try await future.value == 3)
  }

  @Test func `map, flatMap and mapError transform a future's result`() async throws {
    #expect(try await Future(2).map { $0 * 2 }.value == 4)
    #expect(try await Future(2).flatMap { Future("\($0)") }.value == "2")
    await #expect(throws: Broken()) { try await Future(2).map { _ throws -> Int in throw Broken() }.value }
    await #expect(throws: Broken()) { try await Future(2).flatMap { _ throws -> Future<Int> in throw Broken() }.value }
    await #expect(throws: Other()) { try await Future<Int>(Broken()).mapError { _ in Other() }.value }
  }

  @Test func `recover replaces the matching errors`() async throws {
    let broken = Future<Int>(Broken())
    #expect(try await broken.recover { _ in Future(1) }.value == 1)
    #expect(try await broken.recover(if: Broken.self) { _ in Future(2) }.value == 2)
    #expect(try await broken.recover(if: { $0 is Broken }, { _ in Future(3) }).value == 3)
    await #expect(throws: Broken()) { try await broken.recover(if: Other.self) { _ in Future(2) }.value }
    await #expect(throws: Other()) { try await broken.recover { _ in throw Other() }.value }
    #expect(try await Future(7).recover { _ in Future(1) }.value == 7)
  }

  @Test func `filter rejects a value by throwing`() async throws {
    let check: @Sendable (Int) throws -> Void = { if $0 > 3 { throw Broken() } }
    #expect(try await Future(3).filter(check).value == 3)
    await #expect(throws: Broken()) { try await Future(4).filter(check).value }
  }

  @Test func `zip returns all values, or the first error without waiting`() async throws {
    #expect(try await Future(1).zip(Future("a")).value == (1, "a"))
    #expect(try await Future(1).zip(Future("a"), Future(true)).value == (1, "a", true))
    let (never, resolver) = pending(Int.self)
    await #expect(throws: Broken()) { try await never.zip(Future<Int>(Broken())).value }
    await #expect(throws: Broken()) { try await Future<Int>(Broken()).zip(never).value }
    resolver.set(0)
  }

  @Test func `batch keeps the order, and fails with the first error`() async throws {
    let (first, one) = pending(Int.self)
    let (second, two) = pending(Int.self)
    let both = Future.batch(first, second)
    two.set(2)
    #expect(both.currentResult == nil)
    one.set(1)
    #expect(try await both.value == [1, 2])
    #expect(try await Future<Int>.batch([]).value == [])
    let (never, resolver) = pending(Int.self)
    await #expect(throws: Broken()) { try await Future.batch([never, Future(Broken())]).value }
    resolver.set(0)
  }

  @Test func `plus, zip and chain combine futures, and unzip and collapse split them`() async throws {
    #expect(try await (Future(1) + Future("a")).value == (1, "a"))
    #expect(try await Future(1).zip(Future("a"), Future(true), Future(2.5)).value == (1, "a", true, 2.5))
    #expect(try await Future(1).chain(Future("a")).value == "a")
    await #expect(throws: Broken()) { try await Future<Int>(Broken()).chain(Future("a")).value }
    let (number, text) = Future((1, "a")).unzip()
    #expect(try await number.value == 1)
    #expect(try await text.value == "a")
    #expect(try await Future((1, 2)).collapse { $0 + $1 }.value == 3)
    #expect(try await Future((1, 2, 3)).collapse { $0 + $1 + $2 }.value == 6)
  }

  @Test func `optionals are filled, mapped and wrapped`() async throws {
    #expect(try await Future<Int?>(nil).fill { 3 }.value == 3)
    #expect(try await Future<Int?>(1).fill { 3 }.value == 1)
    #expect(try await Future<Int?>(nil).flatFill { Future(3) }.value == 3)
    #expect(try await Future<Int?>(1).flatFill { Future(3) }.value == 1)
    #expect(try await Future<Int?>(1).unwrappedMap { "\($0)" }.value == "1")
    #expect(try await Future<Int?>(nil).unwrappedMap { "\($0)" }.value == nil)
    #expect(try await Future(1).optional().value == 1)
  }

  @Test func `unwrap fails for nil`() async throws {
    #expect(try await Future<Int?>(1).unwrap().value == 1)
    #expect(await failure { try await Future<Int?>(nil).unwrap().value } == .notFound)
  }

  @Test func `an asynchronous operation resolves a future`() async throws {
    #expect(try await Future { try await Future(4).value }.value == 4)
    await #expect(throws: Broken()) { try await Future { try await Future<Int>(Broken()).value }.value }
    #expect(try await withFuture { try await Future(4).async() }.value == 4)
    await #expect(throws: Broken()) { try await withFuture { try await Future<Int>(Broken()).value }.value }
  }

  @Test func `a cancelled waiter stops waiting, and the future continues`() async throws {
    let (future, resolver) = pending(Int.self)
    let waiter = Task { try await future.value }
    waiter.cancel()
    await #expect(throws: CancellationError.self) { try await waiter.value }
    #expect(future.currentResult == nil)
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

/// Returns the result of a future, in synchronous code.
private func blockingResult<T>(of future: Future<T>) -> Result<T, any Error> { future.result }
