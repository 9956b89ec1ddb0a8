import Documents
import Glibc
import Wire

/// An operation at its limits, beside which small requests are measured.
struct PausingOperation: Sendable {
  typealias MakeRequest = @Sendable (borrowing DocumentConnection) -> [UInt8]

  let name: String
  var indexes: [[String]] = []
  /// Whether the server may refuse it.
  var mayFail = false
  /// What is sent before the operation.
  var setup: [MakeRequest] = []
  let request: MakeRequest
  /// What ends the operation after its reply.
  var finish: @Sendable (borrowing DocumentConnection) throws -> Void = { _ in }
  /// What is sent after the operation.
  var cleanup: [MakeRequest] = []

  /// The number of entries that one request may write.
  private static let count = 65_536

  static let all = [
    PausingOperation(name: "nothing for 0.3 s", request: { $0.pingRequest }, finish: { _ in usleep(300_000) }),
    PausingOperation(name: "put-many of 65,536 values", request: { $0.putManyRequest(values) }, cleanup: [deleteAll]),
    PausingOperation(
      name: "put-many over 65,536 values", setup: [{ $0.putManyRequest(values) }],
      request: { $0.putManyRequest(values) }),
    PausingOperation(
      name: "put-many of 16 MiB, arrays of 200 numbers, one index", indexes: [["a"]],
      request: { $0.putManyRequest(arrays) }, cleanup: [deleteAll]),
    PausingOperation(
      name: "put-many of 65,536 documents, 63 indexes",
      indexes: (0..<63).map { $0 / 8 == $0 % 8 ? ["f\($0 / 8)"] : ["f\($0 / 8)", "f\($0 % 8)"] },
      request: { $0.putManyRequest(flat) }, cleanup: [deleteAll]),
    PausingOperation(
      name: "put of 16 MiB", request: { $0.putRequest("large", [UInt8](repeating: 120, count: 16_000_000)) }),
    PausingOperation(
      name: "delete-many of 65,536 documents, 2 indexes", indexes: [["n"], ["g"]], setup: [{ $0.putManyRequest(flat) }],
      request: { $0.deleteManyRequest(flat.map(\.key)) }),
    PausingOperation(
      name: "update of 65,536 documents, 2 indexes", indexes: [["n"], ["g"]], setup: [{ $0.putManyRequest(flat) }],
      request: { $0.changeRequest(#"{"n":{"$gte":0}}"#, #"{"$inc":{"g":1}}"#) }),
    PausingOperation(
      name: "deletion of 65,536 documents, 2 indexes", indexes: [["n"], ["g"]], setup: [{ $0.putManyRequest(flat) }],
      request: { $0.changeRequest(#"{"n":{"$gte":0}}"#, nil) }),
    PausingOperation(
      name: "apply of 65,536 puts", request: { $0.applyRequest(values.map { (.putSingle, $0.key, $0.value) }) }),
    PausingOperation(
      name: "apply of 65,536 updates", setup: [{ $0.putManyRequest(flat) }],
      request: { $0.applyRequest(flat.map { (.update, $0.key, Array(#"{"$inc":{"g":1}}"#.utf8)) }) }),
    PausingOperation(
      name: "get-many of 65,536 keys", setup: [{ $0.putManyRequest(values) }],
      request: { $0.getManyRequest(values.map(\.key)) }),
    PausingOperation(
      name: "get-many of 65,536 absent keys of 240 bytes", request: { $0.getManyRequest(longKeys) }),
    PausingOperation(
      name: "page of 65,536 entries", setup: [{ $0.putManyRequest(values) }], request: { $0.pageRequest(65_536) }),
    PausingOperation(
      name: "find of 65,536 documents", setup: [{ $0.putManyRequest(flat) }],
      request: { $0.findRequest(FindText(selector: "{}", sort: #"["g"]"#, limit: 65_536)) }),
    PausingOperation(
      name: "aggregation with 1,000,000 groups", mayFail: true,
      setup: (0..<16).map { part in { $0.putManyRequest(documents(part * count)) } },
      request: { $0.aggregateRequest(#"{"by":["n"],"compute":["count"]}"#) }),
    PausingOperation(
      name: "delete-all of 262,144 documents, 8 indexes", indexes: (0..<8).map { ["f\($0)"] },
      setup: (0..<4).map { part in { $0.putManyRequest(documents(part * count)) } }, request: deleteAll),
    PausingOperation(
      name: "creation of an index of 262,144 documents",
      setup: (0..<4).map { part in { $0.putManyRequest(documents(part * count)) } },
      request: { $0.ensureIndexRequest("n") }, finish: { try $0.waitForIndexes() },
      cleanup: [{ $0.deleteIndexRequest("n") }]),
  ]

  private static let deleteAll: MakeRequest = { $0.deleteAllRequest }

  private static func key(_ number: Int) -> [UInt8] { Array("document:\(10_000_000 + number)".utf8) }

  /// Values of 100 bytes.
  private static let values = (0..<count).map { (key: key($0), value: [UInt8](repeating: 120, count: 100)) }

  private static let longKeys = (0..<count).map { [UInt8](repeating: 120, count: 223) + key($0) }

  private static let flat = documents(0)

  private static func documents(_ first: Int) -> [(key: [UInt8], value: [UInt8])] {
    (first..<first + count).map { number in
      let fields = (0..<8).map { #","f\#($0)":\#(number &* 7919 % 1_000_003)"# }.joined()
      return (key(number), Array(#"{"n":\#(number),"g":\#(number % 100)\#(fields)}"#.utf8))
    }
  }

  private static let arrays = (0..<20_600).map { number in
    let list = (0..<200).map { "\((number * 200 + $0) &* 7919 % 999)" }.joined(separator: ",")
    return (key: key(number), value: Array(#"{"a":[\#(list)]}"#.utf8))
  }
}

extension DocumentConnection {
  func putManyRequest(_ entries: [(key: [UInt8], value: [UInt8])]) -> [UInt8] {
    request(.putMany) { body in
      body.append(UInt32(entries.count))
      for entry in entries {
        unsafe body.appendWrite(kind: .single, key: entry.key.span.bytes, value: entry.value.span.bytes)
      }
    }
  }

  func putRequest(_ key: String, _ value: [UInt8]) -> [UInt8] {
    request(.put) { unsafe $0.appendWrite(kind: .single, key: Array(key.utf8).span.bytes, value: value.span.bytes) }
  }

  func deleteManyRequest(_ keys: [[UInt8]]) -> [UInt8] { listRequest(.deleteMany, keys) }
  func getManyRequest(_ keys: [[UInt8]]) -> [UInt8] { listRequest(.getMany, keys) }

  private func listRequest(_ operation: Wire.Operation, _ keys: [[UInt8]]) -> [UInt8] {
    request(operation) { body in
      body.append(UInt32(keys.count))
      for key in keys { unsafe body.appendListedKey(key.span.bytes) }
    }
  }

  func changeRequest(_ selector: String, _ update: String?) -> [UInt8] {
    let selector = Array(selector.utf8)
    return request(.changeMatching) { body in
      if let update {
        let update = Array(update.utf8)
        unsafe body.appendChangeMatching(selector: selector.span.bytes, update: update.span.bytes)
      } else {
        unsafe body.appendChangeMatching(selector: selector.span.bytes, update: nil)
      }
    }
  }

  func applyRequest(_ operations: [(kind: ApplyRecord.Kind, key: [UInt8], value: [UInt8])]) -> [UInt8] {
    request(.apply) { body in
      body.append(UInt32(operations.count))
      for operation in operations {
        unsafe body.appendApply(operation.kind, key: operation.key.span.bytes, value: operation.value.span.bytes)
      }
    }
  }

  func pageRequest(_ limit: UInt32) -> [UInt8] {
    let none = [UInt8]()
    return request(.page) { body in
      unsafe body.appendScan(
        page: (limit, 0), prefix: none.span.bytes, after: nil, reverse: false, keysOnly: false)
    }
  }

  func aggregateRequest(_ aggregation: String) -> [UInt8] {
    let (none, aggregation) = ([UInt8](), Array(aggregation.utf8))
    return request(.aggregate) { body in
      unsafe body.appendAggregate(selector: none.span.bytes, aggregation: aggregation.span.bytes)
    }
  }

  var pingRequest: [UInt8] { request(.ping, ofServer: true) { _ in } }

  func createStore(_ name: String) throws {
    let body = [UInt8(name.utf8.count)] + Array(name.utf8) + Array("memory".utf8)
    _ = try exchange(request(.storeCreate, ofServer: true) { $0.append(body) }, count: 1)
  }

  func dropStore(_ name: String) throws {
    _ = try exchange(request(.storeDrop, ofServer: true) { $0.append(Array(name.utf8)) }, count: 1)
  }

  var deleteAllRequest: [UInt8] { request(.deleteAll) { _ in } }

  func ensureIndexRequest(_ field: String) -> [UInt8] {
    request(.indexEnsure) { $0.append(Array(#"{"name":"\#(field)","fields":["\#(field)"]}"#.utf8)) }
  }

  func deleteIndexRequest(_ name: String) -> [UInt8] { request(.indexDelete) { $0.append(Array(name.utf8)) } }
}
