import DataSourceFutures
import DataSources
import Testing

@Suite struct QueryTests {
  @Test func `the error for an unsupported query names the query`() {
    let error = IdsQuery([1]).notSupported(.get, InMemoryDataSource<Int>())
    #expect(error == .queryNotSupported)
    #expect(error.message == "InMemoryDataSource<Int> doesn't support IdsQuery<Int> in get")
  }

  @Test func `errors of the same kind are equal, and codes are fixed`() {
    #expect(DataSourceError(.notFound, "a") == DataSourceError(.notFound, "b"))
    #expect(DataSourceError.notFound != .notValid)
    #expect(DataSourceError.Kind.allCases.map(\.rawValue) == Array(0...8) + [23, 36])
    #expect(DataSourceError(.dataSerialization).code == 7)
    #expect("\(DataSourceError(.failed, "why"))" == "why")
  }

  @available(*, deprecated)
  @Test func `older names still work`() {
    #expect(ArrayQuery([1, 2]).values == [1, 2])
    #expect(QueryById("a").key == "a")
    #expect(BlankQuery() == VoidQuery())
  }

  @Test func `integers of every width have decimal keys`() {
    #expect(IdQuery(UInt64.max).key == "18446744073709551615")
    #expect(IdQuery(Int8.min).key == "-128")
    #expect(IdQuery(0 as UInt16).key == "0")
  }

  @Test func `calls that return futures accept ids and queries`() async throws {
    let source = InMemoryDataSource<String>()
    let erased = AnyGetDataSource(source)
    func calls() -> Future<[[String]]> {
      let put: Future<String> = source.put("A", forId: 1)
      return put.flatMap { _ in source.putAll(["x", "y"], forId: "list") }
        .flatMap { _ in
          Future.batch(
            erased.get(1).map { [$0] }, erased.getAll("list"), erased.getAll([1, 1]), erased.getAll(AllObjectsQuery()))
        }
    }
    #expect(try await calls().value == [["A"], ["x", "y"], ["A", "A"], ["A", "x", "y"]])
    func deletes() -> Future<Void> {
      source.delete(1).flatMap { _ in source.deleteAll(["list"]) }
    }
    try await deletes().value
    #expect(try await source.getAll(AllObjectsQuery()) == [])
  }
}
